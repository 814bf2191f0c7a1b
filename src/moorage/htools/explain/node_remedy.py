# SPDX-License-Identifier: BSD-2-Clause
"""The smallest change of one node that turns a no into a yes, found by trying."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from moorage.htools.constraints.violation import Violation
from moorage.htools.explain.remedy import Change, Part, between
from moorage.htools.node import Node
from moorage.htools.state import State
from moorage.htools.units import Units

Holds = Callable[[State], bool]
"""Says whether, in a cluster like this, the request can be met."""

_TRIED: Final = 8
"""Nodes that are tried for each kind, those that lack least first."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What one node lacks at least.

    Attributes
    ----------
    what : str
        As in `moorage.htools.explain.remedy.Part`.
    short : int
        How much, at least.
    """

    at: int
    what: str
    short: int


def lacks(findings: Iterable[Violation]) -> Iterator[Lack]:
    """Yield what nodes lack, by the constraints that refused them."""
    for one in findings:
        if one.lacks and one.node >= 0 and (one.short or one.lacks == "online"):
            yield Lack(one.node, one.lacks, one.short)
        yield from lacks(one.because)


def node_change(
    state: State, holds: Holds, findings: Iterable[Violation]
) -> Change | None:
    """Return the least change of one node that helps; None when none does.

    Parameters
    ----------
    holds
        Says whether the request can be met; it cannot in `state`.
    findings
        Why nodes refuse: they say where to try what.
    """
    found = _shortest(lacks(findings))
    singles = [one for kind in _by_kind(found) if (one := _best(state, holds, kind))]
    if singles:
        return Change((min(singles, key=lambda one: one[0])[1],))
    for at in dict.fromkeys(lack.at for lack in found[:_TRIED]):
        parts = _together(state, holds, state.nodes[at])
        if parts:
            return Change(parts)
    return None


def _shortest(found: Iterable[Lack]) -> list[Lack]:
    """Return each node's least lack of each kind, the least first."""
    least: dict[tuple[int, str], Lack] = {}
    for lack in found:
        key = lack.at, lack.what
        if key not in least or lack.short < least[key].short:
            least[key] = lack
    return sorted(least.values(), key=lambda lack: lack.short)


def _by_kind(found: Sequence[Lack]) -> Iterator[list[Lack]]:
    for what in dict.fromkeys(lack.what for lack in found):
        yield [lack for lack in found if lack.what == what][:_TRIED]


def _best(
    state: State, holds: Holds, kind: Sequence[Lack]
) -> tuple[float, Part] | None:
    """Return the node that needs least of one kind; with a rank among kinds."""
    best: tuple[float, Part] | None = None
    bound = _plenty(state, kind[0].what, kind[-1].short) + 1
    for lack in kind:
        node = state.nodes[lack.at]
        by = _least(state, holds, node, lack, bound - 1)
        if by is None:
            continue
        bound = by
        rank = 2.0 if lack.what == "online" else by / max(1.0, _whole(node, lack.what))
        best = rank, Part(lack.what, 0, by, node=node.name)
    return best


def _least(state: State, holds: Holds, node: Node, lack: Lack, most: int) -> int | None:
    """Return the least that helps and is at most `most`."""
    if lack.what == "online":
        return 1 if holds(more(state, node, "online", 1)) else None

    def enough(by: int) -> bool:
        return holds(more(state, node, lack.what, by))

    good = max(1, lack.short)
    if good > most or not (enough(good) or enough(most)):
        return None
    while not enough(good):
        good = min(most, good * 2)
    return between(good, 0, enough)


def _plenty(state: State, what: str, short: int = 0) -> int:
    """Return more than a node can be short of.

    No more than that: on nodes with exclusive storage it is filled up to see what
    a place spoils.
    """
    if what == "online":
        return 1
    largest = max(_whole(node, what) for node in state.nodes)
    return max(
        1024 if what not in ("processors", "spindles") else 64,
        int(4 * largest),
        2 * short,
    )


def _whole(node: Node, what: str) -> float:
    wholes = {
        "memory": node.mem_total,
        "disk": node.disk_total,
        "processors": node.cpus,
        "spindles": float(node.spindles),
    }
    return wholes.get(what, node.disk_total)


def _together(state: State, holds: Holds, node: Node) -> tuple[Part, ...]:
    """Return all that one node needs; nothing when even plenty does not help."""
    plenty = {what: _plenty(state, what) for what in _wanted(node)}
    needs = dict(plenty)
    if not holds(_changed(state, node, needs)):
        return ()
    for what in needs:

        def enough(by: int, what: str = what) -> bool:
            return holds(_changed(state, node, needs | {what: by}))

        needs[what] = 0 if enough(0) else between(plenty[what], 0, enough)
    return tuple(Part(what, 0, by, node=node.name) for what, by in needs.items() if by)


def _wanted(node: Node) -> list[str]:
    online = ["online"] if node.offline else []
    if node.units is None:
        return [*online, "memory", "disk", "processors", "spindles"]
    units = ["/".join(name) for name in node.units.names]
    return [*online, "memory", *units, "processors", "spindles"]


def _changed(state: State, node: Node, needs: dict[str, int]) -> State:
    for what, by in needs.items():
        if by:
            state = more(state, state.nodes[node.idx], what, by)
    return state


def more(state: State, node: Node, what: str, by: int) -> State:
    """Return the cluster with more of something on one node."""
    if what == "online":
        return state.with_nodes([node.copy(offline=False)])
    if what == "memory":
        return state.with_nodes([_more_memory(node, by)])
    if what == "disk":
        free = node.disk_free + by, node.disk_free_all + by
        changed = node.copy(disk_free=free[0], disk_free_all=free[1])
        return state.with_nodes([changed])
    if what == "processors":
        cpus = node.copy(cpus=node.cpus + by)
        return state.with_nodes([cpus.with_policy(node.policy)])
    if what == "spindles":
        return state.with_nodes([_more_spindles(node, by)])
    return _more_room(state, node, what, by)


def _more_memory(node: Node, by: int) -> Node:
    return node.copy(
        mem_total=node.mem_total + by,
        mem_free=node.mem_free + by,
        mem_base=node.mem_base + by,
        mem_free_all=node.mem_free_all + by,
        fails_n1=node.fails_n1 and node.mem_free + by < node.reserved,
    )


def _more_spindles(node: Node, by: int) -> Node:
    free = by if node.exclusive else 0
    changed = node.copy(
        spindles=node.spindles + by,
        spindles_free=node.spindles_free + free,
        spindles_free_all=node.spindles_free_all + free,
    )
    return changed.with_policy(node.policy)


def _more_room(state: State, node: Node, what: str, by: int) -> State:
    """Return the cluster with more room in a unit; a pool grows on every node."""
    units = node.units
    at = _place(units, what)
    if units is None or at is None:
        return state
    if not units.shared[at]:
        return state.with_nodes([node.copy(units=_grown(units, at, by))])
    found = []
    for one in state.nodes:
        place = None if one.units is None else one.units.place(units.names[at])
        if one.units is not None and place is not None:
            found.append(one.copy(units=_grown(one.units, place, by)))
    return state.with_nodes(found)


def _place(units: Units | None, what: str) -> int | None:
    names = [] if units is None else ["/".join(name) for name in units.names]
    return names.index(what) if what in names else None


def _grown(units: Units, at: int, by: int) -> Units:
    free = list(units.free)
    room = free[at]
    free[at] = None if room is None else room + by
    return units._replace(free=tuple(free))
