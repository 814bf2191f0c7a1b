# SPDX-License-Identifier: BSD-2-Clause
"""Losing nodes, fast: `moorage.htools.redundancy` on the kernel's arrays."""

from collections.abc import Callable

from moorage.htools.grid import COMPILED, Grid, fixed, is_plain, plain_nodes
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.policy import breach
from moorage.htools.state import State
from moorage.htools.words import Mirror

_FAILOVER, _ELSEWHERE = 1, 2


class Losses:
    """One group of a state, to lose its nodes one by one.

    `survives` answers like `moorage.htools.redundancy.survive`, or None where
    the kernel does not model what must restart.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.usable = COMPILED and plain_nodes(state)
        self.grid: Grid | None = None
        self.places: dict[int, int] = {}
        self.fixed = (0.0, 0.0, 0.0, 0.0, 0.0)

    def follow(self, state: State) -> bool:
        """Turn to a state of the same nodes and instances; say whether that works."""
        old = self.state
        if old.view != state.view or len(old.insts) != len(state.insts):
            return False
        if self.grid is not None:
            self.grid.renew(old, state, _mask)
            self.fixed = fixed(state)
        self.state = state
        return True

    def survives(self, lost: int, order: list[Inst]) -> bool | None:
        """Say whether everybody restarts; None when that is not modelled."""
        if not self.usable:
            return None
        grid = self._loaded()
        if any(inst.idx not in self.places for inst in order):
            return None
        undo = self._undo(grid, order)
        grid.kernel.reset(self.fixed)
        place = grid.places[lost]
        done = all(self._restart(grid, inst, place) >= 0 for inst in order)
        undo()
        return done

    def _undo(self, grid: Grid, order: list[Inst]) -> Callable[[], None]:
        """Return what puts the arrays back; a copy of peers grows with n squared."""
        rows, tagged, n = grid.rows[:], grid.tagged[:], len(grid.places)
        places = [
            grid.places[inst.s] * n + grid.places[inst.p]
            for inst in order
            if inst.mirror is Mirror.INTERNAL
        ]
        places += [at % n * n + at // n for at in places]
        peers = {at: grid.peers[at] for at in places}

        def undo() -> None:
            grid.rows[:], grid.tagged[:] = rows, tagged
            for at, value in peers.items():
                grid.peers[at] = value

        return undo

    def _restart(self, grid: Grid, inst: Inst, lost: int) -> int:
        if is_movable(inst):
            return grid.kernel.restart(self.places[inst.idx], lost)
        open_places = [
            place
            for at, place in grid.places.items()
            if place != lost and self._takes(self.state.nodes[at], inst)
        ]
        return grid.kernel.anew(self.places[inst.idx], open_places)

    def _takes(self, node: Node, inst: Inst) -> bool:
        """Say whether a node is there, and its policy accepts the instance."""
        fail = breach(node.policy, inst, exclusive=node.exclusive)
        return not node.offline and fail is None

    def _loaded(self) -> Grid:
        if self.grid is None:
            view = set(self.state.view)
            movers = [inst for inst in self.state.people if is_plain(inst, view)]
            self.grid = Grid(self.state, movers, _mask, force=True)
            self.places = {inst.idx: place for place, inst in enumerate(movers)}
            self.fixed = fixed(self.state)
        return self.grid


def _mask(inst: Inst) -> int:
    return _FAILOVER if inst.mirror is Mirror.INTERNAL else _ELSEWHERE


def is_movable(inst: Inst) -> bool:
    """Say whether an instance restarts as it is, rather than being made anew."""
    return inst.mirror is not Mirror.NONE and inst.template != "blockdev"
