# SPDX-License-Identifier: BSD-2-Clause
"""Rolling maintenance: which nodes can be rebooted at the same time.

Two nodes must not go down together if one is the secondary of an instance on the
other, nor, while instances run, if both fail over to the same node. That is a
graph, and its colours are the groups. Instances without a secondary are moved
away for the time of the reboot; a group for which there is no room is divided.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from moorage.errors import NoCapacity
from moorage.htools.assignment import (
    add_primary,
    add_secondary,
    drop_primary,
    drop_secondary,
)
from moorage.htools.colouring import Colouring, Edge, Graph, fewest, painted
from moorage.htools.constants import Mirror
from moorage.htools.constraints.admission import reach
from moorage.htools.constraints.violation import Violation
from moorage.htools.inst import Inst
from moorage.htools.moves import Moved
from moorage.htools.node import Node
from moorage.htools.state import State


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes that are rebooted together.

    Attributes
    ----------
    nodes : tuple of int
        Which, by index.
    state : State
        The cluster while they are down: everybody where they wait.
    """

    nodes: tuple[int, ...]
    state: State


Who = Callable[[State, int], list[int]]
"""Returns the instances that must leave a node."""

Placing = Callable[[State, Inst, int], Moved | Violation | None]
"""Moves an instance to a node, or says why not."""


def is_redundant(inst: Inst) -> bool:
    """Say whether an instance has a second node to run on."""
    return inst.mirror is Mirror.INTERNAL


def loners(state: State, at: int) -> list[int]:
    """Return the instances on a node that have no second node."""
    held = state.nodes[at].primaries
    return [idx for idx in held if not is_redundant(state.insts[idx])]


def graph(state: State, members: Sequence[int], *, offline: bool = False) -> Graph:
    """Return which of some nodes must not be rebooted together.

    Parameters
    ----------
    members
        Nodes by index, at least one, in order; others have no edges.
    offline
        Instances are shut down, so that none fails over.
    """
    edges = list(_mirror_edges(state))
    if not offline:
        known = set(edges)
        edges += [edge for edge in _shared_edges(state) if edge not in known]
    inside = set(members)
    kept = (edge for edge in edges if inside.issuperset(edge))
    return Graph.of(members[0], members[-1], kept)


def _mirror_edges(state: State) -> Iterator[Edge]:
    for inst in state.insts:
        if is_redundant(inst):
            yield inst.p, inst.s
            yield inst.s, inst.p


def _shared_edges(state: State) -> dict[Edge, None]:
    """Return the pairs of nodes that fail over to the same one, each once."""
    found: dict[Edge, None] = {}
    for node in state.nodes:
        sources = [state.insts[at].p for at in node.secondaries]
        found |= dict.fromkeys((one, other) for one in sources for other in sources)
    return found


def batches(
    state: State,
    colouring: Colouring,
    *,
    ignore_loners: bool = False,
    evacuate: bool = False,
) -> list[Batch]:
    """Return the groups of a colouring, divided until there is room for everybody.

    Parameters
    ----------
    ignore_loners
        Leave instances without a second node where they are.
    evacuate
        Move secondaries away, too.

    Raises
    ------
    NoCapacity
        If somebody has nowhere to go.
    """
    targets = [node.idx for node in state.nodes if not node.offline]
    found = [Batch(tuple(members), state) for members in colouring]
    if not ignore_loners:
        why = "Not enough capacity to move non-redundant instances"
        found = _divided(found, targets, loners, _moved, why)
    if evacuate:
        found = [Batch(batch.nodes, _failed_over(batch)) for batch in found]
        why = "Not enough capacity to move secondaries"
        found = _divided(found, targets, _seconds, _replaced, why)
    return found


def waves(state: State) -> list[tuple[int, ...]]:
    """Return the nodes of each wave in which all are restarted, by index.

    What ``hroller --ignore-non-redundant`` prints: nobody is moved.
    """
    members = [node for node in state.nodes if not node.offline]
    if not members:
        return []
    colours = fewest(painted(graph(state, [node.idx for node in members])))
    found = batches(state, colours, ignore_loners=True)
    return [batch.nodes for batch in ordered(found, members)]


def _divided(
    found: list[Batch], targets: list[int], who: Who, placing: Placing, why: str
) -> list[Batch]:
    """Return batches, each divided into parts that can be cleared at once."""
    parts: list[Batch] = []
    for batch in found:
        left = list(batch.nodes)
        while left:
            part = _cleared(batch.state, left, targets, who, placing)
            if not part.nodes:
                raise NoCapacity(why)
            parts.append(part)
            left = [at for at in left if at not in part.nodes]
    return parts


def _cleared(
    state: State, wanted: list[int], targets: list[int], who: Who, placing: Placing
) -> Batch:
    """Clear as many of some nodes as there is room for, in order."""
    cleared: list[int] = []
    for at in wanted:
        others = [target for target in targets if target != at]
        group = state.nodes[at].group
        mates = [other for other in others if state.nodes[other].group == group]
        after = _relocated(state, who(state, at), mates, placing)
        if after is not None:
            state, targets = after, others
            cleared.append(at)
    return Batch(tuple(cleared), state)


def _relocated(
    state: State, people: list[int], mates: list[int], placing: Placing
) -> State | None:
    """Put each instance on the first node that takes it; None if one finds none."""
    for idx in people:
        tried = (placing(state, state.insts[idx], at) for at in mates)
        moved = next((found for found in tried if isinstance(found, Moved)), None)
        if moved is None:
            return None
        state = state.after(moved)
    return state


def _moved(state: State, inst: Inst, at: int) -> Moved | Violation:
    """Run an instance on another node for a while: only what is hard counts."""
    barred = reach(state.nodes[at], inst)
    if barred is not None:
        return barred
    there = add_primary(state.nodes[at], inst, force=True)
    if isinstance(there, Violation):
        return there
    left = drop_primary(state.nodes[inst.p], inst)
    return Moved((left, there), inst.moved(at, inst.s))


def _seconds(state: State, at: int) -> list[int]:
    return list(state.nodes[at].secondaries)


def _replaced(state: State, inst: Inst, at: int) -> Moved | Violation | None:
    """Keep the second copy of an instance on another node."""
    if at == inst.p:
        return None
    there = add_secondary(state.nodes[at], inst, inst.p, force=True)
    if isinstance(there, Violation):
        return there
    left = drop_secondary(state.nodes[inst.s], inst)
    return Moved((left, there), inst.moved(inst.p, at))


def _failed_over(batch: Batch) -> State:
    """Return the state after everybody with a second node went there."""
    state = batch.state
    people = [
        idx
        for at in batch.nodes
        for idx in state.nodes[at].primaries
        if is_redundant(state.insts[idx])
    ]
    for idx in people:
        moved = _swapped(state, state.insts[idx])
        if isinstance(moved, Violation):
            raise NoCapacity("Failed to migrate instances off nodes")
        state = state.after(moved)
    return state


def _swapped(state: State, inst: Inst) -> Moved | Violation:
    p, s = state.nodes[inst.p], state.nodes[inst.s]
    new_p = add_primary(drop_secondary(s, inst), inst, force=True)
    if isinstance(new_p, Violation):
        return new_p
    new_s = add_secondary(drop_primary(p, inst), inst, inst.s, force=True)
    if isinstance(new_s, Violation):
        return new_s
    return Moved((new_s, new_p), inst.moved(inst.s, inst.p))


def ordered(found: Sequence[Batch], members: Sequence[Node]) -> list[Batch]:
    """Return batches of some nodes: large ones first, the master's last.

    Nodes that are not in question are left out.
    """
    inside = {node.idx for node in members}
    masters = {node.idx for node in members if node.master}
    kept = [
        Batch(tuple(at for at in batch.nodes if at in inside), batch.state)
        for batch in found
    ]
    kept.sort(key=lambda batch: len(batch.nodes), reverse=True)
    kept.sort(key=lambda batch: bool(masters.intersection(batch.nodes)))
    return [
        Batch(tuple(sorted(batch.nodes, key=masters.__contains__)), batch.state)
        for batch in kept
    ]


def relocations(before: State, after: State) -> list[Inst]:
    """Return the instances that are on other nodes than before, as they are then.

    Those whose primary and secondary only changed places are not moved.
    """
    pairs = zip(before.insts, after.insts, strict=True)
    return [new for old, new in pairs if _is_elsewhere(old, new)]


def _is_elsewhere(old: Inst, new: Inst) -> bool:
    kept_second = not is_redundant(old) or old.s == new.s
    swapped = (new.p, new.s) == (old.s, old.p)
    return not swapped and not (old.p == new.p and kept_second)
