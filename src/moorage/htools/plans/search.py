# SPDX-License-Identifier: BSD-2-Clause
"""The best move, found fast: a state as arrays, searched by the kernel.

`Searcher` keeps the arrays from one step to the next and renews only the rows
of nodes that changed. What the kernel does not model (failure domains, migration
tags, storage units, exclusive storage, unknown sizes) is left to
`moorage.htools.plans.balancing.best_step`, the plain definition of the search.
"""

from math import inf
from typing import Final

from moorage.htools.constraints.violation import Violation
from moorage.htools.grid import (
    COMPILED,
    Grid,
    Masks,
    is_plain,
    movable_spindles,
    plain_nodes,
)
from moorage.htools.inst import Inst
from moorage.htools.moves import FA, FR, FRF, RF, F, Move, R, apply
from moorage.htools.plans import balancing
from moorage.htools.plans.balancing import Filter, Rules, Step
from moorage.htools.state import State

VERBS: Final = (F, FA, R, RF, FRF, FR)


def best_step(
    state: State, rules: Rules, current: float, allowed: Filter | None = None
) -> Step | None:
    """Return the first of the best steps; None when nothing beats `current`."""
    return Searcher().best_step(state, rules, current, allowed)


class Searcher:
    """A search that remembers the state that it saw last.

    Pass its `best_step` to `moorage.htools.plans.balancing.balance`.
    """

    def __init__(self) -> None:
        self.state: State | None = None
        self.rules: Rules | None = None
        self.arrays: Grid | None = None

    def best_step(
        self,
        state: State,
        rules: Rules,
        current: float,
        allowed: Filter | None = None,
    ) -> Step | None:
        """Return the first of the best steps; None when nothing beats `current`."""
        if not self._follows(state, rules) and not supported(state, rules):
            return balancing.best_step(state, rules, current, allowed)
        touched = self._load(state, rules)
        arrays, above, fresh = self.arrays, -inf, touched is None
        assert arrays is not None  # noqa: S101 - loaded just now
        while True:
            near = arrays.kernel.find(current, above, fresh, touched or ())
            if not near:
                return None
            for found in sorted(near, key=_order):
                step = _step(arrays, state, rules, found)
                if allowed is None or allowed(state, step.moved):
                    return step
            # Then whatever is worse.
            above, fresh = arrays.kernel.band(), True
            self.state = None

    def _load(self, state: State, rules: Rules) -> list[int] | None:
        """Fill or renew the arrays; return what changed, None for everything."""
        old, arrays = self.state, self.arrays
        if old is not None and arrays is not None and self._follows(state, rules):
            touched = arrays.renew(old, state, _masks(state, rules))
        else:
            self.arrays, touched = _grid(state, rules), None
        self.state, self.rules = state, rules
        return touched

    def _follows(self, state: State, rules: Rules) -> bool:
        """Say whether a state comes from the last one by moves alone."""
        old = self.state
        return (
            old is not None
            and self.rules == rules
            and old.fleet is state.fleet
            and old.view == state.view
            and len(old.insts) == len(state.insts)
        )


def _order(found: tuple[float, int, int, int]) -> tuple[float, int, int, int]:
    value, inst, verb, target = found
    return value, inst, 0 if verb == 0 else 1 + target, verb


def supported(state: State, rules: Rules) -> bool:
    """Say whether the kernel models everything that matters in a state."""
    if not COMPILED or not plain_nodes(state):
        return False
    view, movers = set(state.view), balancing.movers(state, rules)
    plain = all(is_plain(inst, view) for inst in movers)
    return plain and movable_spindles(state, movers)


def _step(
    grid: Grid, state: State, rules: Rules, found: tuple[float, int, int, int]
) -> Step:
    """Return the step that the kernel found."""
    value, place, verb, target = found
    inst = state.insts[grid.movers[place]]
    move = Move(VERBS[verb], state.view[target] if target >= 0 else -1)
    moved = apply(state.nodes, inst, move, force=rules.force)
    if isinstance(moved, Violation):
        # Two answers to one question: better no answer.
        raise RuntimeError(  # noqa: TRY004 - a contradiction, not a type
            f"kernel and definition differ on {inst.name}: {move}"
        )
    return Step(inst, move, moved, value)


def _mask(state: State, inst: Inst, rules: Rules) -> int:
    """Return which verbs an instance may use, one bit each."""
    if rules.evacuate and not any(state.nodes[at].offline for at in inst.nodes):
        return 0
    verbs = balancing.possible(state, inst, rules)
    return sum(1 << place for place, verb in enumerate(VERBS) if verb in verbs)


def _masks(state: State, rules: Rules) -> Masks:
    return lambda inst: _mask(state, inst, rules)


def _grid(state: State, rules: Rules) -> Grid:
    movers = balancing.movers(state, rules)
    return Grid(state, movers, _masks(state, rules), force=rules.force)
