# SPDX-License-Identifier: BSD-2-Clause
"""Allocation where nodes have exclusive storage: spoil as little as possible.

On such nodes a balanced score says nothing; what counts is how many instances
of the policy's smallest sizes still fit. A place is judged by how many of those
it loses, for the sizes with the largest disk first, then by the disk it leaves.
"""

from collections.abc import Iterator, Sequence

from moorage.htools import inst as insts_of
from moorage.htools.assignment import add_primary
from moorage.htools.constants import fixed
from moorage.htools.constraints.violation import Violation
from moorage.htools.fleet import InstanceRow
from moorage.htools.inst import Inst
from moorage.htools.moves import Moved
from moorage.htools.node import Node
from moorage.htools.placement.allocate import (
    Allocation,
    Asking,
    Refusal,
    described,
)
from moorage.htools.policy import Policy
from moorage.htools.single_placement import Placement, on_nodes
from moorage.htools.state import State

Loss = tuple[tuple[int, ...], int]
"""Instances that no longer fit, per size; and the free disk left, MiB."""


def is_dedicated(state: State, group: str | None) -> bool:
    """Say whether all nodes that a request may use have exclusive storage."""
    usable = {
        at
        for at, found in enumerate(state.groups)
        if (
            found.alloc_policy != "unallocable"
            if group is None
            else found.name == group
        )
    }
    return all(node.exclusive for node in state.nodes if node.group in usable)


def probes(policy: Policy) -> list[Inst]:
    """Return the policy's smallest instances, those with the largest disk first."""
    specs = sorted((low for low, _ in policy.ranges), key=lambda spec: -spec.disk)
    rows = [
        InstanceRow(
            "probe",
            spec.memory,
            spec.disk,
            spec.cpus,
            spindle_use=spec.spindles,
            auto_balance=False,
        )
        for spec in specs
    ]
    return [insts_of.from_row(-1, row) for row in rows]


def room(node: Node, sizes: Sequence[Inst]) -> tuple[int, ...]:
    """Return how many instances of each size fit on a node."""
    return tuple(_count(node, inst) for inst in sizes)


def _count(node: Node, inst: Inst) -> int:
    count = -1
    after: Node | Violation = node
    while not isinstance(after, Violation):
        count += 1
        after = add_primary(after, inst)
    return count


def try_dedicated(
    state: State, inst: Inst, places: Sequence[tuple[int, list[int]]], asking: Asking
) -> Allocation:
    """Return the place that loses least; ties go to the last."""
    found = Allocation()
    best: Loss | None = None
    for nodes in _spots(places):
        moved = on_nodes(state, inst, nodes, force=asking.force)
        if isinstance(moved, Violation):
            found.refused.append(Refusal(nodes, moved.fail))
            continue
        found.successes += 1
        loss = _loss(state, moved)
        if best is None or not best < loss:
            best, found.best = loss, Placement(moved, 0.0)
    return _described(state, found, best)


def _spots(places: Sequence[tuple[int, list[int]]]) -> Iterator[tuple[int, ...]]:
    for p, others in places:
        yield from ((p, s) for s in others)
        if not others:
            yield (p,)


def _loss(state: State, moved: Moved) -> Loss:
    """Return what a place spoils; sizes are those of the primary's policy."""
    pairs = [(state.nodes[node.idx], node) for node in moved.nodes]
    sizes = probes(pairs[0][0].policy)
    lost = zip(*(_lost(old, new, sizes) for old, new in pairs), strict=True)
    return tuple(map(sum, lost)), sum(node.disk_free for node in moved.nodes)


def _lost(before: Node, after: Node, sizes: Sequence[Inst]) -> tuple[int, ...]:
    pairs = zip(room(before, sizes), room(after, sizes), strict=True)
    return tuple(a - b for a, b in pairs)


def _described(state: State, found: Allocation, loss: Loss | None) -> Allocation:
    described(state, found)
    if loss is not None and found.best is not None:
        lost = ",".join(map(str, loss[0]))
        old = f"score: {fixed(found.best.score, 8)}"
        found.log[0] = found.log[0].replace(old, f"score: ([{lost}],{loss[1]})", 1)
        found.loss = loss
    return found
