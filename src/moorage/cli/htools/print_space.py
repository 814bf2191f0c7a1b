# SPDX-License-Identifier: BSD-2-Clause
"""What hspace says: for people, or for programs in lines of ``NAME=value``."""

import sys
from math import isnan
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools import shell_vars
from moorage.cli.htools.values import is_yes, verbosity
from moorage.htools import reports
from moorage.htools.cluster_stats import UNKNOWN, Totals
from moorage.htools.constants import PAIRED, fixed
from moorage.htools.formats.text import shown
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.loader import shared_suffix
from moorage.htools.metrics import score
from moorage.htools.placement.space import Filled, Size
from moorage.htools.state import State

PREFIX: Final = "HTS"


class Printer:
    """Prints what a run finds.

    Attributes
    ----------
    machine
        Whether a program reads it.
    exclusive
        Whether some node counts spindles.
    """

    def __init__(self, options: Options, start: State, template: str) -> None:
        self.options = options
        self.machine = is_yes(options.machine)
        self.verbose = verbosity(options)
        self.start = start
        self.template = template
        self.exclusive = any(node.exclusive for node in start.nodes)

    def introduce(self) -> None:
        """Tell what there is."""
        suffix = shared_suffix(self.start)
        if suffix and self.verbose > 1:
            sys.stderr.write(
                f"Note: Stripping common suffix of '{suffix}' from names\n"
            )
        self.show_nodes("Initial cluster", self.start)
        if self.verbose > 2:
            now = fixed(score(self.start.nodes), 8)
            table = reports.metric_table(self.start.nodes)
            sys.stderr.write(f"Initial coefficients: overall {now}\n{table}")
        totals = Totals.of(self.start.nodes)
        if self.machine:
            shell_vars.show_all(
                PREFIX, [("CLUSTER_" + k, v) for k, v in totals.sizes(spn=True)]
            )
            shell_vars.show(PREFIX, CLUSTER_NODES=len(self.start.nodes))
            shell_vars.show_all(PREFIX, [("INI_" + k, v) for k, v in totals.report()])
            return
        sizes = ", ".join(f"{k} {v}" for k, v in totals.sizes(spn=self.exclusive))
        print(
            f"The cluster has {len(self.start.nodes)} nodes and the following "
            f"resources:\n  {sizes}."
        )
        print(f"There are {totals.instances or 'no'} initial instances on the cluster.")

    def show_nodes(self, when: str, state: State) -> None:
        """Show the nodes, if that was asked for."""
        if self.options.print_nodes is not None:
            shown_nodes = reports.node_table(state.nodes, self.options.print_nodes)
            sys.stderr.write(f"\n{when} status:\n{shown_nodes}\n")

    def print_spec(self, name: str, size: Size) -> None:
        """Tell what is placed."""
        pairs = [("MEM", size.mem), ("DSK", size.disk), ("CPU", size.cpu)]
        if self.machine:
            prefix = "TSPEC_INI" if name == "Tiered" else "SPEC"
            pairs.append(("SPN", size.spindles))
            shell_vars.show_all(PREFIX, [(f"{prefix}_{k}", v) for k, v in pairs])
            nodes = 2 if self.template == PAIRED else 1
            shell_vars.show_all(PREFIX, [(f"{prefix}_RQN", nodes)])
            shell_vars.show_all(PREFIX, [(f"{prefix}_DISK_TEMPLATE", self.template)])
            return
        if self.exclusive:
            pairs.append(("SPN", size.spindles))
        kind = "fixed-size" if name == "Standard" else "initial size"
        print(
            f"{name} ({kind}) instance spec is:\n  "
            f"{', '.join(f'{k} {v}' for k, v in pairs)}, using disk template "
            f"'{self.template}'."
        )

    def print_tiered(self, done: Filled) -> None:
        """Tell what came of the tiered filling."""
        if self.machine:
            totals = Totals.of(done.state.nodes)
            shell_vars.show_all(PREFIX, [("TRL_" + k, v) for k, v in totals.report()])
            shell_vars.show(
                PREFIX, TSPEC=" ".join(_run_text(*run) for run in done.sizes)
            )
            self._print_usage(totals)
            return
        print("Tiered allocation results:")
        if not done.new:
            print("  - no instances allocated")
        for size, count in done.sizes:
            text = f"MEM {size.mem}, DSK {size.disk}, CPU {size.cpu}"
            if self.exclusive:
                text += f", SPN {size.spindles}"
            print(f"  - {count:3d} instances of spec {text}")
        self._print_ends(done)

    def _print_usage(self, after: Totals) -> None:
        before = Totals.of(self.start.nodes)
        for word, values in before.usage(after).items():
            columns = zip(("CPU", "NPU", "MEM", "DSK", "SPN"), values, strict=True)
            pairs = [
                (f"KM_{word}_{k}", shown(float(v)) if k == "NPU" else v)
                for k, v in columns
            ]
            shell_vars.show_all(PREFIX, pairs)

    def print_results(self, done: Filled) -> None:
        """Tell what came of the filling with standard instances."""
        if not self.machine:
            print("Normal (fixed-size) allocation results:")
            print(f"  - {len(done.new):3d} instances allocated")
            self._print_ends(done)
            return
        totals = Totals.of(done.state.nodes)
        shell_vars.show_all(PREFIX, [("FIN_" + k, v) for k, v in totals.report()])
        old = len(self.start.insts)
        whole = old + len(done.new)
        usage = fixed(old / whole, 8) if whole else "NaN"
        shell_vars.show_all(
            PREFIX,
            [
                ("ALLOC_USAGE", usage),
                ("ALLOC_INSTANCES", len(done.new)),
                ("ALLOC_FAIL_REASON", done.reasons[0][0].value.upper()),
                *((f"ALLOC_{fail.value}_CNT", count) for fail, count in done.reasons),
            ],
        )

    def _print_ends(self, done: Filled) -> None:
        print(f"  - most likely failure reason: {done.reasons[0][0].value}")
        print(f"  - initial cluster score: {fixed(score(self.start.nodes), 8)}")
        print(f"  -   final cluster score: {fixed(score(done.state.nodes), 8)}")
        totals = Totals.of(done.state.nodes)
        shares = [
            ("memory", totals.mem_share),
            ("disk", totals.disk_share),
            ("vcpu", totals.cpu_share),
        ]
        if self.exclusive:
            shares.append(("spindles", totals.spindle_share))
        width = max(len(word) for word, _ in shares)
        for word, share in shares:
            percent = f"{fixed(share * 100, 2):>5}%"
            told = UNKNOWN if isnan(share) and not totals.room.known else percent
            print(f"  - {word:>{width}} usage efficiency: {told}")

    def map(self, done: Filled) -> str:
        """Return where each new instance is."""
        nodes = done.state.nodes
        rows = [
            [
                inst.name,
                nodes[inst.p].name,
                "" if inst.s == NOWHERE else nodes[inst.s].name,
                str(inst.mem),
                str(inst.dsk),
                str(inst.vcpus),
                self._spindles(inst),
            ]
            for inst in done.new
        ]
        return reports.table(rows, [False] * 3 + [True] * 4) if rows else ""

    def _spindles(self, inst: Inst) -> str:
        if not self.exclusive:
            return ""
        return "?" if inst.total_spindles is None else str(inst.total_spindles)


def _run_text(size: Size, count: int) -> str:
    return f"{size.mem},{size.disk},{size.cpu},{size.spindles}={count}"
