# SPDX-License-Identifier: BSD-2-Clause
"""Where one new instance fits, fast: every place scored by the kernel."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Self, TypeVar

from moorage.htools.constants import Fail
from moorage.htools.grid import COMPILED, Grid, changed_nodes, plain_nodes
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.placement.allocation import FAILS, Places, Refusal
from moorage.htools.policy import breach
from moorage.htools.single_placement import full_pool
from moorage.htools.state import State

T = TypeVar("T")
_IN_A_BREATH: Final = 25_000
"""Rows that the kernel looks at before other threads of the process have a turn: some
milliseconds."""
_PAIRS_AT_ONCE: Final = 100
"""Pairs of one primary that take the time of one single node."""
_NUMBERS: Final = {fail: number for number, fail in enumerate(Fail, 1)}

Spot = tuple[int, ...]
"""Nodes for one instance, primary first."""
Scored = tuple[float, Spot]
"""A place that would do, with the score there."""
Rows = list[tuple[int, list[int]]]
"""Primaries with their secondaries, as the kernel counts nodes."""


def _breathing(tries: list[T], cost: int) -> Iterator[list[T]]:
    """Yield what to try in parts so small that no other thread waits long for its turn.

    Parameters
    ----------
    cost
        Rows that the kernel looks at for one of them.
    """
    size = max(1, _IN_A_BREATH // max(1, cost))
    return (tries[at : at + size] for at in range(0, len(tries), size))


class _Field:
    """Places to try, as the kernel counts nodes, and whose policy they are under."""

    def __init__(self, state: State, places: Places, at: dict[int, int]) -> None:
        self.places = places
        self.mirrored = any(others for _, others in places)
        self.rows: Rows = [(at[p], [at[s] for s in others]) for p, others in places]
        nodes = [state.nodes[p] for p, _ in places]
        kinds = {(id(node.policy), node.exclusive): node for node in nodes}
        order = list(kinds)
        self.samples: list[Node] = list(kinds.values())
        self.kinds = [order.index((id(n.policy), n.exclusive)) for n in nodes]

    def split(self, inst: Inst) -> tuple[list[int], Rows]:
        """Return why each place's policy refuses (0: it does not), and the rest."""
        fails = [breach(n.policy, inst, exclusive=n.exclusive) for n in self.samples]
        if not any(fails):
            return [0] * len(self.kinds), self.rows
        numbers = [0 if fail is None else _NUMBERS[fail] for fail in fails]
        whys = [numbers[kind] for kind in self.kinds]
        return whys, [row for row, why in zip(self.rows, whys, strict=True) if not why]


@dataclass(slots=True)
class ArrayCache:
    """Keeps the arrays of the last state, for who asks often about like states."""

    state: State | None = None
    inst: Inst | None = None
    near: frozenset[int] | None = None
    grid: Grid | None = None
    field: _Field | None = None

    def grid_for(self, state: State, inst: Inst) -> Grid:
        """Return the arrays of a state, with an instance to be placed."""
        old, near = self.state, _reached(state, inst)
        serves = near == self.near and self._serves(state, inst)
        if self.grid is None or old is None or not serves:
            self.near = near
            self.grid = Grid(state, [inst.copy(reach=near)], _no_verbs)
            self.inst, self.field = inst, None
        else:
            if old is not state:
                self.grid.renew_nodes(state, changed_nodes(old, state))
            self.grid.put_instance(0, inst, _no_verbs)
        self.state = state
        return self.grid

    def field_for(self, places: Places, state: State, grid: Grid) -> _Field:
        """Return places as the kernel counts them; the last ones are kept."""
        field = self.field
        if field is None or field.places is not places:
            field = self.field = _Field(state, places, grid.places)
        return field

    def knows(self, state: State) -> bool:
        """Say whether the arrays are those of the same nodes, at some moment."""
        old = self.state
        return old is not None and old.fleet is state.fleet and old.view == state.view

    def _serves(self, state: State, inst: Inst) -> bool:
        last = self.inst
        if last is None or not self.knows(state) or _lists(last) != _lists(inst):
            return False
        return self.state is state or not inst.excl_tags


def _lists(inst: Inst) -> tuple[object, ...]:
    """Return what the arrays keep from one instance to the next."""
    return inst.excl_tags, inst.desired, inst.reach, inst.wants


def _reached(state: State, inst: Inst) -> frozenset[int] | None:
    """Return the nodes whose storage reaches an instance, and has room for it."""
    if inst.reach is None and not inst.wants:
        return None
    return frozenset(
        at
        for at in state.view
        if (inst.reach is None or at in inst.reach)
        and full_pool(state, inst, state.nodes[at]) is None
    )


def _no_verbs(_inst: Inst) -> int:
    return 0


class Placer:
    """A state and an instance that is to be placed in it."""

    def __init__(self, state: State, inst: Inst, shelf: ArrayCache) -> None:
        self.state, self.inst, self.shelf = state, inst, shelf

    @classmethod
    def of(cls, state: State, inst: Inst, shelf: ArrayCache | None) -> Self | None:
        """Return a placer; None where the kernel does not model the question."""
        if not cls.knows(state, inst, shelf):
            return None
        return cls(state, inst, shelf or ArrayCache())

    @staticmethod
    def knows(state: State, inst: Inst, shelf: ArrayCache | None) -> bool:
        """Say whether the kernel models the question."""
        known = shelf is not None and shelf.knows(state)
        return COMPILED and not inst.forthcoming and (known or plain_nodes(state))

    def part(self, places: Places, *, force: bool) -> "Singles | Pairs":
        """Return some places, tried."""
        grid = self.grid()
        field = self.shelf.field_for(places, self.state, grid)
        if field.mirrored:
            return Pairs(self, grid, field, force)
        return Singles(self, grid, field, force)

    def grid(self) -> Grid:
        """Return the arrays, with this state and this instance in them."""
        return self.shelf.grid_for(self.state, self.inst)


class Singles:
    """Single nodes, tried by the kernel.

    Attributes
    ----------
    counts : list of int
        How often each reason occurred, by number; 0 counts those that would do.
    """

    def __init__(self, placer: Placer, grid: Grid, field: _Field, force: bool) -> None:
        self.places = field.places
        self.view = placer.state.view
        self.whys, self.rows = field.split(placer.inst)
        parts = _breathing([at for at, _ in self.rows], len(self.view))
        tried = (grid.kernel.singles(0, spots, force) for spots in parts)
        self.found = list(chain.from_iterable(tried))
        self.counts = [0] * len(FAILS)
        for why in self.whys if len(self.rows) < len(self.whys) else ():
            self.counts[why] += bool(why)
        for why, _ in self.found:
            self.counts[why] += 1

    @property
    def best(self) -> Scored | None:
        """Score and node of the last of the best places."""
        return self.ranked()[0] if self.counts[0] else None

    def ranked(self) -> list[Scored]:
        """Return the places that would do, the best first; of equals the last."""
        good: list[Scored] = [
            (score, (self.view[at],))
            for (at, _), (why, score) in zip(self.rows, self.found, strict=True)
            if not why
        ]
        good.reverse()
        return sorted(good, key=_score)

    def refusals(self) -> list[Refusal]:
        """Return every refusal with its place."""
        rest = iter(self.found)
        whys = [why or next(rest)[0] for why in self.whys]
        return [
            Refusal((p,), FAILS[why])
            for (p, _), why in zip(self.places, whys, strict=True)
            if why
        ]


class Pairs:
    """Pairs of nodes, counted by the kernel, and told apart when that is asked.

    Attributes
    ----------
    counts : list of int
        As in `Singles`.
    best : Scored or None
        Score and nodes of the last of the best pairs.
    """

    def __init__(self, placer: Placer, grid: Grid, field: _Field, force: bool) -> None:
        self.placer, self.places, self.force = placer, field.places, force
        self.counts = [0] * len(FAILS)
        whys, rows = field.split(placer.inst)
        if len(rows) < len(whys):
            for (_, others), why in zip(self.places, whys, strict=True):
                self.counts[why] += len(others) if why else 0
        view = placer.state.view
        self.best: Scored | None = None
        for some in _breathing(rows, len(view) ** 2 // _PAIRS_AT_ONCE):
            found, best = grid.kernel.best_pair(0, some, force)
            for why, count in enumerate(found):
                self.counts[why] += count
            if best and (self.best is None or best[0] <= self.best[0]):
                self.best = best[0], (view[best[1]], view[best[2]])

    def ranked(self) -> list[Scored]:
        """Return the places that would do, the best first; of equals the last."""
        good = [(score, spot) for spot, why, score in self._all() if not why]
        good.reverse()
        return sorted(good, key=_score)

    def refusals(self) -> list[Refusal]:
        """Return every refusal with its place."""
        return [Refusal(spot, FAILS[why]) for spot, why, _ in self._all() if why]

    def _all(self) -> Iterator[tuple[Spot, int, float]]:
        """Yield every pair with its reason by number, and the score if none."""
        grid = self.placer.grid()
        field = _Field(self.placer.state, self.places, grid.places)
        whys, _ = field.split(self.placer.inst)
        for (p, others), row, why in zip(self.places, field.rows, whys, strict=True):
            numbers, scores = [why] * len(others), list[float]()
            if not why:
                numbers, scores = grid.kernel.pairs(0, *row, self.force)
            left = iter(scores)
            for s, number in zip(others, numbers, strict=True):
                yield (p, s), number, 0.0 if number else next(left)


def _score(scored: Scored) -> float:
    return scored[0]
