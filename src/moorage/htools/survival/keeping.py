# SPDX-License-Identifier: BSD-2-Clause
"""A plan's promise: what can be lost before a step can be lost after it, node by node.

A node that strands somebody may be lost all the same if another order of restarts
places everybody (`moorage.htools.survival.ways`). A plan keeps that,
too: it is allowed to make such a node better, and not to make it worse.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from moorage.htools.moves import Moved
from moorage.htools.state import State
from moorage.htools.survival.n1 import Guard
from moorage.htools.survival.ways import Way, another_way, is_way

TRIES: Final = 200
"""Restarts that are tried for a way of one node; a plan asks again and again."""
SEARCHED: Final = 50
"""Nodes that a way is looked for; on larger clusters that would take too long."""


@dataclass(frozen=True, slots=True)
class Losable:
    """What a state can lose.

    Attributes
    ----------
    nodes : frozenset of int
        Those after whose loss everybody restarts, one by one.
    ways : mapping of int to Way
        Others, with the way that everybody on them restarts by hand.
    """

    nodes: frozenset[int]
    ways: Mapping[int, Way] = field(default_factory=dict)


class Losing:
    """A filter for the moves of one plan, which asks it step after step.

    It refuses a move after which a node cannot be lost that could be before.

    Attributes
    ----------
    broken : int
        The node that forbids the move that was refused last; -1 before that.
    """

    def __init__(self) -> None:
        self.guard = Guard()
        self.broken = -1
        self.now: tuple[State, Losable] | None = None
        self.next: tuple[State, Losable] | None = None

    def __call__(self, state: State, moved: Moved) -> bool:
        """Say whether a move takes nothing away that can be lost."""
        before, after = self.of(state), state.after(moved)
        found = self._kept(after, before)
        if found is not None:
            self.next = after, found
        return found is not None

    def of(self, state: State) -> Losable:
        """Return what a state can lose; it is often the one that was allowed last."""
        if self.now is not None and _is_same(self.now[0], state):
            return self.now[1]
        if self.next is not None and _is_same(self.next[0], state):
            found = self._grown(state, self.next[1])
        else:
            found = self._searched(state)
        self.now = state, found
        return found

    def keeps(self, start: State, end: State) -> bool:
        """Say whether the end of a plan can lose what its start can."""
        return self._kept(end, self.of(start)) is not None

    def _kept(self, after: State, before: Losable) -> Losable | None:
        """Return what is still known to be losable; None if something is not."""
        broken = self.guard.first_unlosable(after, before.nodes)
        if broken is not None:
            self.broken = broken
            return None
        better = self.guard.losable(after, before.ways.keys())
        ways: dict[int, Way] = {}
        for at, way in before.ways.items():
            if at in better:
                continue
            found = way if is_way(after, at, way) else another_way(after, at, TRIES)[0]
            if found is None:
                self.broken = at
                return None
            ways[at] = found
        return Losable(before.nodes | better, ways)

    def _grown(self, state: State, known: Losable) -> Losable:
        """Return what is known, and the nodes that can be lost since the last step."""
        rest = set(state.view).difference(known.nodes, known.ways)
        return Losable(known.nodes | self.guard.losable(state, rest), known.ways)

    def _searched(self, state: State) -> Losable:
        nodes = self.guard.losable(state, state.view)
        ways: dict[int, Way] = {}
        for at in sorted(set(state.view) - nodes)[:SEARCHED]:
            way, _ = another_way(state, at, TRIES)
            if way is not None:
                ways[at] = way
        return Losable(nodes, ways)


def _is_same(one: State, other: State) -> bool:
    return one is other or one.nodes == other.nodes


class Keeper(Losing):
    """The same for hbal: a cluster without shared storage is left to the score.

    The score weighs the failover memory of mirrored instances as Ganeti's does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shared: bool | None = None

    def __call__(self, state: State, moved: Moved) -> bool:
        """Say whether a move takes nothing away that can be lost."""
        if self.shared is None:
            self.shared = state.has_shared
        return not self.shared or super().__call__(state, moved)


def keeps_redundancy(state: State, moved: Moved) -> bool:
    """Say whether a move leaves every node losable that is so now (see `Keeper`)."""
    return Keeper()(state, moved)
