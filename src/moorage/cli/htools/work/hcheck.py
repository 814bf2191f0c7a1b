# SPDX-License-Identifier: BSD-2-Clause
"""hcheck: say what is wrong with a cluster, and what balancing would mend."""

import sys
from collections.abc import Sequence
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools import shell_vars, source
from moorage.cli.htools.rules import rules
from moorage.cli.htools.values import is_yes, verbosity
from moorage.errors import BadInput
from moorage.htools.constants import fixed
from moorage.htools.health import GroupHealth, Health, check, rebalanced, summed
from moorage.htools.state import State

_COUNTERS: Final = (
    ("N1_FAIL", "Nodes not N+1 happy"),
    ("CONFLICT_TAGS", "Nodes with conflicting instances"),
    ("OFFLINE_PRI", "Instances having the primary node offline"),
    ("OFFLINE_SEC", "Instances having a secondary node offline"),
    ("GN1_FAIL", "Nodes not directly evacuateable"),
)
_WHEN: Final = {"INIT": "initially", "FINAL": "after rebalancing"}


def run(options: Options) -> int:
    """Say how the cluster is; 1 if balancing is needed."""
    state = source.cluster(options).state
    if options.survive:
        from moorage.cli.htools.print_survival import report  # noqa: PLC0415 - start-up time

        return report(options, state)
    if options.html is not None:
        raise BadInput("--html draws what --survive says: both are needed")
    printer = _Printer(options, state)
    first = check(state, capacity=printer.capacity)
    whole = summed(first, capacity=printer.capacity)
    printer.introduce(whole, simulate=not options.no_simulation)
    printer.phase("INIT", first, whole)
    simulate = not options.no_simulation and not whole.is_healthy
    end = state
    if simulate or printer.machine:
        if simulate:
            from moorage.htools.plans.search import Searcher  # noqa: PLC0415 - start-up

            end = rebalanced(state, rules(options), search=Searcher().best_step)
        last = check(end, capacity=printer.capacity) if simulate else first
        printer.phase("FINAL", last, summed(last, capacity=printer.capacity))
    if options.explain:
        printer.explain("INIT", state)
        if simulate:
            printer.explain("FINAL", end)
    if printer.machine:
        shell_vars.show("HCHECK", OK=1)
    return 1 if simulate else 0


class _Printer:
    """Prints reports, for people or for programs."""

    def __init__(self, options: Options, state: State) -> None:
        self.machine = is_yes(options.machine)
        self.verbose = verbosity(options)
        self.capacity = not options.no_capacity_checks
        self.state = state
        self.counters = _COUNTERS if self.capacity else _COUNTERS[:-1]

    def introduce(self, whole: Health, *, simulate: bool) -> None:
        """Print what comes before the numbers."""
        if self.machine:
            groups = enumerate(self.state.groups, self.state.fleet.first)
            pairs = [(f"GROUP_UUID_{at}", group.uuid) for at, group in groups]
            shell_vars.show_all("HCHECK", pairs)
        elif self.verbose >= 1:
            print(
                "Running in no-simulation mode."
                if not simulate
                else "No need to rebalance cluster, no problems found."
                if whole.is_healthy
                else "Cluster needs rebalancing."
            )

    def phase(self, when: str, parts: list[GroupHealth], whole: Health) -> None:
        """Print the numbers before or after balancing."""
        for part in parts:
            self._group(when, part)
        need = not whole.is_healthy
        values = [
            *map(str, whole.counters),
            str(int(need)) if self.machine else str(need),
        ]
        names = (*self.counters, ("NEED_REBALANCE", "Cluster is not healthy"))
        self._block(
            f"{when}_CLUSTER", f"Cluster statistics {_WHEN[when]}", names, values
        )

    def explain(self, when: str, state: State) -> None:
        """Print who makes the counters nonzero; programs read the keys only."""
        from moorage.htools.explain.n1_report import troubles  # noqa: PLC0415 - start-up time

        found = troubles(state, capacity=self.capacity)
        lines = [f"\nReasons {_WHEN[when]}"] if found else []
        for key, title in self.counters:
            mine = [one for one in found if one.counter == key.lower()]
            lines += [f"    {title}:"] if mine else []
            for one in mine:
                lines += [f"      {one.text}", *(f"        {d}" for d in one.details)]
        text = "".join(line + "\n" for line in lines)
        (sys.stderr if self.machine else sys.stdout).write(text)

    def _group(self, when: str, part: GroupHealth) -> None:
        name = self.state.groups[part.group].name
        values = [*map(str, part.health.counters), fixed(part.score, 8)]
        names = (*self.counters, ("SCORE", "Group score"))
        at = part.group + self.state.fleet.first
        self._block(
            f"{when}_GROUP_{at}",
            f"Statistics for group {name} {_WHEN[when]}",
            names,
            values,
        )

    def _block(
        self,
        prefix: str,
        title: str,
        names: Sequence[tuple[str, str]],
        values: Sequence[str],
    ) -> None:
        pairs = zip(names, values, strict=True)
        if self.machine:
            shell_vars.show_all(
                "HCHECK", [(f"{prefix}_{key}", v) for (key, _), v in pairs]
            )
        elif self.verbose >= 1:
            print(f"\n{title}")
            for (_, text), value in pairs:
                print(f"    {text}: {value}")
