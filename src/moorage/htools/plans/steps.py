# SPDX-License-Identifier: BSD-2-Clause
"""Steps outside the greedy plan, under the rules of the greedy plan.

Whoever reorders a plan or makes a detour asks here, and more strictly than the
greedy plan does: no node may lose the memory that its failovers need, and what
can be lost stays losable, whatever the disks are
(`moorage.htools.survival.keeping.Losing`).
"""

from collections.abc import Container, Sequence

from moorage.htools.moves import Moved
from moorage.htools.node import Node
from moorage.htools.plans.balancing import Filter, Step
from moorage.htools.state import State


def newly_short(state: State, moved: Moved) -> set[int]:
    """Return the nodes that a move makes fail N+1.

    Only moves off offline nodes, and forced ones, do that. A node that failed
    already, or that has more memory to spare than before, does not count (a
    node that reports more than it can have passes until it is first touched).
    """
    return {
        node.idx
        for node in moved.nodes
        if node.fails_n1
        and not state.nodes[node.idx].fails_n1
        and _spare(node) < _spare(state.nodes[node.idx])
    }


def _spare(node: Node) -> int:
    """Return the memory beyond what failovers need, MiB; it may be negative."""
    return node.unallocated - node.reserved


def short_nodes(start: State, steps: Sequence[Step]) -> set[int]:
    """Return the nodes that some step of a plan makes fail N+1."""
    found: set[int] = set()
    state = start
    for step in steps:
        found |= newly_short(state, step.moved)
        state = state.after(step.moved)
    return found


def careful(*filters: Filter, excused: Container[int] = ()) -> Filter:
    """Return a filter that also refuses moves that make a node fail N+1.

    Parameters
    ----------
    filters
        All must allow a move.
    excused
        Nodes that may come to fail.
    """

    def fits(state: State, moved: Moved) -> bool:
        short = newly_short(state, moved)
        if any(at not in excused for at in short):
            return False
        return all(allowed(state, moved) for allowed in filters)

    return fits
