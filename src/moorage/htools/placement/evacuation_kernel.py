# SPDX-License-Identifier: BSD-2-Clause
"""Where instances that leave their nodes go, fast: every place scored by the kernel.

It knows places that are allowed only; `moorage.htools.placement.evacuation` defines
which those are, and says why others are not.
"""

from collections.abc import Sequence
from math import inf
from typing import Final, Self

from moorage.htools.constants import Mirror
from moorage.htools.grid import (
    COMPILED,
    Grid,
    is_plain,
    movable_spindles,
    plain_nodes,
)
from moorage.htools.inst import Inst
from moorage.htools.moves import FA, R
from moorage.htools.state import State

_VERBS: Final = {FA: 1, R: 2}
"""The kernel's numbers of the moves to one other node."""
_REFUSED: Final = 1e299


class Refuges:
    """One group of nodes, and the instances that are about to leave some of them."""

    def __init__(self, view: State, insts: Sequence[Inst], *, force: bool) -> None:
        self.last = view
        self.slots = {inst.idx: slot for slot, inst in enumerate(insts)}
        self.grid = Grid(view, insts, _mask, force=force)

    @classmethod
    def of(
        cls, state: State, group: int, insts: Sequence[int], *, force: bool
    ) -> Self | None:
        """Return the refuges in a group; None where the kernel does not model it."""
        view = state.group_view(group)
        if not COMPILED or not view.view or not plain_nodes(view):
            return None
        inside = set(view.view)
        people = [state.insts[at] for at in dict.fromkeys(insts)]
        if not movable_spindles(view, people):
            return None
        return cls(view, [i for i in people if is_plain(i, inside)], force=force)

    def knows(self, inst: Inst, open_nodes: Sequence[int]) -> bool:
        """Say whether the kernel models how an instance gets to some nodes."""
        return inst.idx in self.slots and not {inst.p, inst.s}.intersection(open_nodes)

    def best_node(
        self, state: State, inst: Inst, verb: str, open_nodes: Sequence[int]
    ) -> int | None:
        """Return the last of the best nodes to move to; None when all refuse."""
        places = self._places(state, open_nodes)
        slot = self.slots[inst.idx]
        scores = self.grid.kernel.tries(slot, _VERBS[verb], places, inf)
        least = min(scores, default=inf)
        if least >= _REFUSED:
            return None
        return open_nodes[len(scores) - 1 - scores[::-1].index(least)]

    def best_pair(
        self, state: State, inst: Inst, open_nodes: Sequence[int]
    ) -> tuple[int, int] | None:
        """Return the last of the best pairs to move to; None when all refuse."""
        places = self._places(state, open_nodes)
        found = self.grid.kernel.new_pair(self.slots[inst.idx], places)
        view = self.last.view
        return None if found is None else (view[found[1]], view[found[2]])

    def _places(self, state: State, open_nodes: Sequence[int]) -> list[int]:
        """Turn to a state; return some nodes as the kernel counts them."""
        now = state._replace(view=self.last.view, members=self.last.members)
        self.grid.renew(self.last, now, _mask)
        self.last = now
        return [self.grid.places[at] for at in open_nodes]


def _mask(inst: Inst) -> int:
    return 1 << _VERBS[R if inst.mirror is Mirror.INTERNAL else FA]
