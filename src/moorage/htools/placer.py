# SPDX-License-Identifier: BSD-2-Clause
"""Where one new instance fits, fast: every place scored by the kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from moorage.htools.grid import (
    COMPILED,
    Grid,
    changed_nodes,
    classic_nodes,
    plain_nodes,
)
from moorage.htools.inst import Inst
from moorage.htools.policy import breach
from moorage.htools.state import State
from moorage.htools.words import Fail

_NUMBERS = {fail: number for number, fail in enumerate(Fail, 1)}


@dataclass(slots=True)
class Shelf:
    """Keeps the arrays of the last state, for who asks often about like states."""

    state: State | None = None
    tags: tuple[str, ...] = ()
    grid: Grid | None = None

    def grid_for(self, state: State, inst: Inst) -> Grid:
        """Return the arrays of a state, with an instance to be placed."""
        old = self.state
        if self.grid is None or old is None or not self._serves(state, inst):
            self.grid = Grid(state, [inst], _no_verbs)
            self.tags = inst.excl_tags
        else:
            if old is not state:
                self.grid.renew_nodes(state, changed_nodes(old, state))
            self.grid.put_instance(0, inst, _no_verbs)
        self.state = state
        return self.grid

    def knows(self, state: State) -> bool:
        """Say whether the arrays are those of the same nodes, at some moment."""
        old = self.state
        return old is not None and old.fleet is state.fleet and old.view == state.view

    def _serves(self, state: State, inst: Inst) -> bool:
        if not self.knows(state) or self.tags != inst.excl_tags:
            return False
        return self.state is state or not inst.excl_tags


def _no_verbs(_inst: Inst) -> int:
    return 0


class Placer:
    """A state and an instance that is to be placed in it.

    Reasons are numbers: 0 for a place that does, else the place in `Fail`,
    counted from 1.
    """

    def __init__(self, state: State, inst: Inst, shelf: Shelf) -> None:
        self.state = state
        self.inst = inst
        self.grid = shelf.grid_for(state, inst)
        self.closed: dict[int, int] = {}

    @classmethod
    def of(cls, state: State, inst: Inst, shelf: Shelf | None) -> Self | None:
        """Return a placer; None where the kernel does not model the question."""
        odd = inst.forthcoming or inst.desired or inst.reach is not None or inst.wants
        known = shelf is not None and shelf.knows(state)
        plain = known or (plain_nodes(state) and classic_nodes(state))
        if not COMPILED or odd or not plain:
            return None
        return cls(state, inst, shelf or Shelf())

    def _breach(self, at: int) -> int:
        """Return the number of the policy's refusal; 0 for none."""
        node = self.state.nodes[at]
        key = id(node.policy)
        if key not in self.closed:
            fail = breach(node.policy, self.inst, exclusive=node.exclusive)
            self.closed[key] = 0 if fail is None else _NUMBERS[fail]
        return self.closed[key]

    def singles(
        self, places: Sequence[int], *, force: bool
    ) -> tuple[list[int], list[float]]:
        """Return a reason for each node, and the scores of those that do."""
        whys = [self._breach(at) for at in places]
        open_places = [
            self.grid.places[at]
            for at, why in zip(places, whys, strict=True)
            if not why
        ]
        found = iter(self.grid.kernel.singles(0, open_places, force))
        scores = []
        for at, why in enumerate(whys):
            if not why:
                number, score = next(found)
                whys[at] = number
                if number == 0:
                    scores.append(score)
        return whys, scores

    def pairs(
        self, p: int, others: Sequence[int], *, force: bool
    ) -> tuple[list[int], list[float]]:
        """Return a reason for each secondary with `p`, and scores likewise."""
        why = self._breach(p)
        if why:
            return [why] * len(others), []
        places = self.grid.places
        return self.grid.kernel.pairs(
            0, places[p], [places[at] for at in others], force
        )

    def best_pair(
        self, places: Sequence[tuple[int, Sequence[int]]], *, force: bool
    ) -> tuple[list[int], tuple[float, int, int] | None]:
        """Return how often each reason occurs, and score and nodes of the best."""
        at = self.grid.places
        counts = [0] * (len(_NUMBERS) + 1)
        tried = []
        for p, others in places:
            why = self._breach(p)
            if why:
                counts[why] += len(others)
            else:
                tried.append((at[p], [at[s] for s in others]))
        found, best = self.grid.kernel.best_pair(0, tried, force)
        for why, count in enumerate(found):
            counts[why] += count
        if best is None:
            return counts, None
        view = self.state.view
        return counts, (best[0], view[best[1]], view[best[2]])
