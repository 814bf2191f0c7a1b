# SPDX-License-Identifier: BSD-2-Clause
"""hspace: say how many instances still fit."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from typing import Final

from moorage.cli.declaration import Command, Example, Option, Options, Program
from moorage.cli.htools import declared, keys, source, start
from moorage.cli.htools.values import is_yes, verbosity, whole
from moorage.errors import BadInput, NoCapacity
from moorage.htools import tables
from moorage.htools.formats.simulate import size as parse_size
from moorage.htools.formats.text import shown
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.loading import shared_suffix
from moorage.htools.metrics import score
from moorage.htools.placement.allocate import Asking, targets
from moorage.htools.placement.space import (
    Filled,
    Filling,
    Safety,
    Size,
    fill,
    model,
)
from moorage.htools.placement.tiers import fill_tiered
from moorage.htools.policy import Spec
from moorage.htools.state import State
from moorage.htools.survival.redundancy import is_redundant
from moorage.htools.totals import UNKNOWN, Totals
from moorage.htools.words import PAIRED, SPELLINGS, Fail, fixed

PREFIX: Final = "HTS"
_SHOWN: Final = 20
"""Reasons that are told; more of them say the same of other nodes."""


def _run(options: Options) -> int:
    return _Run(options).run()


def _size(text: str) -> Size:
    """Return the size that ``disk,ram,cpu[,spindles]`` says."""
    parts = text.split(",")
    if not 3 <= len(parts) <= 4 or not all(part.isdecimal() for part in parts[2:]):
        raise BadInput(f"'{text}' is no size (disk,ram,cpu[,spindles])")
    cpus, *spindles = (int(part) for part in parts[2:])
    return Size(parse_size(parts[1]), parse_size(parts[0]), cpus, *(spindles or [1]))


def _of_spec(spec: Spec) -> Size:
    return Size(spec.memory, spec.disk, spec.cpus, spec.spindles)


class _Run:
    """One run: two fillings of the same cluster, and what is said about them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.machine = is_yes(options.machine)
        self.verbose = verbosity(options)
        self.start = source.cluster(options).state
        policy = self.start.policy
        if not policy.templates:
            raise BadInput("null list of disk templates received from cluster")
        wanted = options.disk_template
        self.template = SPELLINGS[wanted] if wanted else policy.templates[0]
        use = options.spindle_use
        self.spindle_use = policy.standard.spindles if use is None else use
        self.exclusive = any(node.exclusive for node in self.start.nodes)

    def run(self) -> int:
        """Fill twice, and tell."""
        self._introduce()
        how = self._how()
        policy = self.start.policy
        asked = self.options.tiered_alloc
        sizes = [asked] if asked else [_of_spec(high) for _, high in policy.ranges]
        models = [self._model(size) for size in sizes]
        tiered = self._filled(
            "Tiered",
            sizes[0],
            None if how is None else fill_tiered(self.start, models, how),
        )
        self._print_tiered(tiered)
        standard = self.options.standard_alloc or _of_spec(policy.standard)
        filled = self._filled(
            "Standard",
            standard,
            None if how is None else fill(self.start, self._model(standard), how),
        )
        self._print_results(filled)
        if self.machine:
            keys.show(PREFIX, OK=1)
        if self.options.explain:
            self._explain("Tiered", tiered, sizes[0], how)
            self._explain("Standard", filled, standard, how)
        if self.options.html is not None:
            self._picture(tiered, filled, standard)
        return 0

    def _picture(self, tiered: Filled, filled: Filled, standard: Size) -> None:
        """Draw both fillings; what machines read stays as it is."""
        from moorage.cli.htools.picture.saving import save_room  # noqa: PLC0415

        out = sys.stderr if self.machine else sys.stdout
        save_room(self.options, self.start, (tiered, filled), standard, out)

    def _explain(
        self, name: str, done: Filled, size: Size, how: Filling | None
    ) -> None:
        """Tell why not one more fits; programs read the keys only."""
        from moorage.htools.why import fullness  # noqa: PLC0415 - start-up time

        if how is None:
            found = fullness.explain_unfilled(self.start)
        else:
            size = fullness.next_size(done, size)
            found = fullness.explain_full(
                done, size, self.template, self.spindle_use, how
            )
        told = f"MEM {size.mem}, DSK {size.disk}, CPU {size.cpu}"
        lines = found.sentences(_SHOWN) or ["it does fit"]
        out = sys.stderr if self.machine else sys.stdout
        out.write(f"{name}: why not one more of {told}\n")
        out.writelines(f"  - {line}\n" for line in lines)

    def _model(self, size: Size) -> Inst:
        return model(self.start, size, self.template, self.spindle_use)

    def _introduce(self) -> None:
        suffix = shared_suffix(self.start)
        if suffix and self.verbose > 1:
            sys.stderr.write(
                f"Note: Stripping common suffix of '{suffix}' from names\n"
            )
        self._show_nodes("Initial cluster", self.start)
        if self.verbose > 2:
            now = fixed(score(self.start.nodes), 8)
            table = tables.metric_table(self.start.nodes)
            sys.stderr.write(f"Initial coefficients: overall {now}\n{table}")
        totals = Totals.of(self.start.nodes)
        if self.machine:
            keys.show_all(
                PREFIX, [("CLUSTER_" + k, v) for k, v in totals.sizes(spn=True)]
            )
            keys.show(PREFIX, CLUSTER_NODES=len(self.start.nodes))
            keys.show_all(PREFIX, [("INI_" + k, v) for k, v in totals.report()])
            return
        sizes = ", ".join(f"{k} {v}" for k, v in totals.sizes(spn=self.exclusive))
        print(
            f"The cluster has {len(self.start.nodes)} nodes and the following "
            f"resources:\n  {sizes}."
        )
        print(f"There are {totals.instances or 'no'} initial instances on the cluster.")

    def _how(self) -> Filling | None:
        """Return how to fill; None when the cluster is in no state for it."""
        options = self.options
        bad = [node for node in self.start.nodes if node.fails_n1 and not node.offline]
        closed = set() if options.accept_existing else {node.group for node in bad}
        broken = self._broken_groups() if options.independent else []
        state = _without_groups(self.start, closed.union(broken))
        usable = [
            at
            for at, group in enumerate(state.groups)
            if group.alloc_policy != "unallocable"
        ]
        stopped = bad and not options.accept_existing
        if stopped and not (options.independent and usable):
            return None
        nodes = 2 if self.template == PAIRED else 1
        places = targets(state, nodes, Asking(), usable)
        if not places:
            few = "Not enough online nodes" if nodes == 2 else "No online nodes"
            raise NoCapacity(f"failure during allocation: {few}")
        safe = Safety(online_only=options.accept_existing, skip=broken)
        limit = options.max_length
        return Filling(
            places,
            None if options.no_capacity_checks else safe,
            None if limit == -1 else max(0, limit),
        )

    def _broken_groups(self) -> list[int]:
        """Return groups that cannot lose a node now."""
        online_only = self.options.accept_existing
        parts = self.start.split()
        return [
            at for at, view in parts if not is_redundant(view, online_only=online_only)
        ]

    def _filled(self, name: str, size: Size, filled: Filled | None) -> Filled:
        done = filled or Filled({Fail.N1: 1}, self.start)
        self._print_spec(name, size)
        if self.verbose > 1:
            sys.stderr.write(f"{name} allocation map\n{self._map(done)}")
        self._show_nodes(f"{name} allocation", done.state)
        word = name.lower()
        source.save(self.options.save, word, f"after {word} allocation", done.state)
        return done

    def _map(self, done: Filled) -> str:
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
        return tables.table(rows, [False] * 3 + [True] * 4) if rows else ""

    def _spindles(self, inst: Inst) -> str:
        if not self.exclusive:
            return ""
        return "?" if inst.total_spindles is None else str(inst.total_spindles)

    def _show_nodes(self, when: str, state: State) -> None:
        if self.options.print_nodes is not None:
            shown_nodes = tables.node_table(state.nodes, self.options.print_nodes)
            sys.stderr.write(f"\n{when} status:\n{shown_nodes}\n")

    def _print_spec(self, name: str, size: Size) -> None:
        pairs = [("MEM", size.mem), ("DSK", size.disk), ("CPU", size.cpu)]
        if self.machine:
            prefix = "TSPEC_INI" if name == "Tiered" else "SPEC"
            pairs.append(("SPN", size.spindles))
            keys.show_all(PREFIX, [(f"{prefix}_{k}", v) for k, v in pairs])
            nodes = 2 if self.template == PAIRED else 1
            keys.show_all(PREFIX, [(f"{prefix}_RQN", nodes)])
            keys.show_all(PREFIX, [(f"{prefix}_DISK_TEMPLATE", self.template)])
            return
        if self.exclusive:
            pairs.append(("SPN", size.spindles))
        kind = "fixed-size" if name == "Standard" else "initial size"
        print(
            f"{name} ({kind}) instance spec is:\n  "
            f"{', '.join(f'{k} {v}' for k, v in pairs)}, using disk template "
            f"'{self.template}'."
        )

    def _print_tiered(self, done: Filled) -> None:
        if self.machine:
            totals = Totals.of(done.state.nodes)
            keys.show_all(PREFIX, [("TRL_" + k, v) for k, v in totals.report()])
            keys.show(PREFIX, TSPEC=" ".join(_run_text(*run) for run in done.sizes))
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
            keys.show_all(PREFIX, pairs)

    def _print_results(self, done: Filled) -> None:
        if not self.machine:
            print("Normal (fixed-size) allocation results:")
            print(f"  - {len(done.new):3d} instances allocated")
            self._print_ends(done)
            return
        totals = Totals.of(done.state.nodes)
        keys.show_all(PREFIX, [("FIN_" + k, v) for k, v in totals.report()])
        old = len(self.start.insts)
        whole = old + len(done.new)
        usage = fixed(old / whole, 8) if whole else "NaN"
        keys.show_all(
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


def _run_text(size: Size, count: int) -> str:
    return f"{size.mem},{size.disk},{size.cpu},{size.spindles}={count}"


def _without_groups(state: State, closed: set[int]) -> State:
    groups = tuple(
        replace(group, alloc_policy="unallocable") if at in closed else group
        for at, group in enumerate(state.groups)
    )
    return replace(state, fleet=state.fleet.replaced(groups=groups))


PROGRAM: Final = Program(
    "hspace",
    "say how many instances still fit",
    (
        Command(
            "",
            _run,
            "Say how many instances still fit",
            (),
            (
                *declared.SOURCES,
                declared.SIMULATE,
                *declared.LEVELS,
                declared.PRINT_NODES,
                declared.SAVE,
                declared.MACHINE,
                declared.OFFLINE,
                declared.MAX_CPU,
                declared.MAX_LENGTH,
                declared.MIN_DISK,
                declared.NO_CAPACITY_CHECKS,
                Option(
                    ("--independent-groups",),
                    "let a group that is in disorder not stop the others",
                    dest="independent",
                ),
                Option(
                    ("--accept-existing-errors",),
                    "go on where a node cannot be lost already, but break nothing else",
                    dest="accept_existing",
                ),
                Option(
                    ("--disk-template",),
                    "disk template of the new instances; usual is the policy's first",
                    "TEMPLATE",
                    choices=tuple(SPELLINGS),
                ),
                Option(
                    ("--spindle-use",),
                    "spindles that an instance uses, instead of what the policy says",
                    "SPINDLES",
                    whole(0, 2**31),
                ),
                Option(
                    ("--standard-alloc",),
                    "size of the standard instance: disk,memory,cpus[,spindles]",
                    "STDSPEC",
                    _size,
                ),
                Option(
                    ("--tiered-alloc",),
                    "largest size of the tiered instances: disk,memory,cpus[,spindles]",
                    "TSPEC",
                    _size,
                ),
                declared.EXPLAIN,
                declared.HTML,
                *declared.ASKED,
            ),
            examples=(
                Example("hspace -L", "room on the cluster whose master is here"),
                Example(
                    "hspace --simulate p,20,1t,64g,16",
                    "room on 20 nodes that you may buy",
                ),
            ),
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run hspace."""
    return start.run(PROGRAM, argv)


if __name__ == "__main__":
    sys.exit(main())
