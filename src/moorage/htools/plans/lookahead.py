# SPDX-License-Identifier: BSD-2-Clause
"""Looking ahead: pairs of moves where no single move gains.

The greedy plan comes first, unchanged; where it ends, two moves are taken
together if they gain together, and single moves go on from there. So the plan
never ends at a higher score than the greedy one.

All pairs would be too many: the first move is one of a *beam*, the moves with
the least score of their own (which may be above the current one); the second is
the best of all moves after it. One sweep costs as much as that many greedy steps.
"""

from collections.abc import Callable, Iterator
from heapq import nsmallest
from math import inf
from typing import Final

from moorage.htools.inst import NOWHERE
from moorage.htools.metrics import least_score, score
from moorage.htools.moves import Move, Moved, apply
from moorage.htools.plans.balancing import (
    DEFAULT_RULES,
    Filter,
    Plan,
    Rules,
    Step,
    balance,
    legal_steps,
    movers,
    possible,
)
from moorage.htools.plans.search import VERBS, Searcher, supported
from moorage.htools.plans.steps import careful
from moorage.htools.state import State
from moorage.htools.survival.keeping import Losing

BUDGET: Final = 25_600
"""First moves times instances, in one sweep."""
NARROW: Final = 16
"""First moves where the kernel cannot search for the second one."""
_ROUNDING: Final = 1e-9
"""Least gain of a pair: below it, rounding decides and plans go in circles."""
_REFUSED: Final = 1e299

First = tuple[float, int, int, int]
"""Score, instance, place of the verb, target: the order of first moves."""


def beam_width(state: State, rules: Rules) -> int:
    """Return how many first moves are tried, at least 16.

    ``BUDGET / instances``, from 64 on; 16 where the kernel is not compiled or does
    not model the cluster, and one search takes far longer.
    """
    if not supported(state, rules):
        return NARROW
    return max(64, BUDGET // max(1, len(movers(state, rules))))


def look_ahead(
    state: State,
    rules: Rules = DEFAULT_RULES,
    *,
    allowed: Filter | None = None,
    told: Callable[[Step, int], None] | None = None,
    turned: Callable[[Plan], None] | None = None,
    beam: int | None = None,
) -> Plan:
    """Return the greedy plan, carried on by pairs of moves.

    A pair must gain `rules.min_gain` whatever the score: two moves for less are
    not worth their copies. Each of its moves passes the checks of a single one,
    leaves no node short of the memory that its failovers need, and with
    `rules.keep_redundancy` leaves every node losable that was, whatever the disks.

    Parameters
    ----------
    allowed
        Refuses moves that would be best but harm.
    told
        Called with each step and its number.
    turned
        Called with the greedy plan where single moves end.
    beam
        First moves to try for each pair, at least 1; None for `beam_width`.
    """
    walk = _Walk(rules, allowed, told, beam)
    start = score(state.seen)
    plan = walk.singles(Plan(state, state, start, start, []))
    if turned is not None and walk.has_room(plan):
        turned(plan)
    while walk.has_room(plan):
        pair = walk.pair(plan)
        if pair is None:
            break
        plan = walk.singles(walk.joined(plan, pair))
    return plan


class _Walk:
    """A plan that grows: by single moves, and by pairs."""

    def __init__(
        self,
        rules: Rules,
        allowed: Filter | None,
        told: Callable[[Step, int], None] | None,
        beam: int | None,
    ) -> None:
        self.rules = rules
        self.allowed = allowed
        filters = [Losing()] if rules.keep_redundancy else []
        self.careful = careful(*filters, *([] if allowed is None else [allowed]))
        self.told = told
        self.beam = beam
        self.searcher = Searcher()
        self.second = Searcher()

    def left(self, plan: Plan) -> int:
        """Return how many more steps the plan may have; negative for any number."""
        most = self.rules.max_steps
        return most if most < 0 else most - len(plan.steps)

    def has_room(self, plan: Plan) -> bool:
        """Say whether there is something to gain, and room for two steps."""
        goal = least_score(plan.end.seen) + self.rules.min_score
        return plan.last_score > goal and self.left(plan) not in (0, 1)

    def singles(self, plan: Plan) -> Plan:
        """Return the plan carried on by single moves."""
        before = len(plan.steps)

        def told(step: Step, number: int) -> None:
            if self.told is not None:
                self.told(step, before + number)

        more = balance(
            plan.end,
            self.rules._replace(max_steps=self.left(plan)),
            search=self._search,
            allowed=self.allowed,
            told=told,
        )
        steps = [*plan.steps, *more.steps]
        return plan._replace(end=more.end, last_score=more.last_score, steps=steps)

    def _search(
        self, state: State, _rules: Rules, current: float, allowed: Filter | None
    ) -> Step | None:
        # The number of steps left is no concern of the search, which would
        # begin anew with other rules.
        return self.searcher.best_step(state, self.rules, current, allowed)

    def joined(self, plan: Plan, pair: tuple[Step, Step]) -> Plan:
        """Return the plan with a pair at its end."""
        end, steps = plan.end, list(plan.steps)
        for step in pair:
            end = end.after(step.moved)
            steps.append(step)
            if self.told is not None:
                self.told(step, len(steps))
        return plan._replace(end=end, last_score=pair[1].score, steps=steps)

    def pair(self, plan: Plan) -> tuple[Step, Step] | None:
        """Return the best pair of moves of the beam; None when none gains enough."""
        state, found = plan.end, None
        bar = plan.last_score - max(self.rules.min_gain, _ROUNDING)
        for first in self._firsts(state):
            later = state.after(first.moved)
            second = self.second.best_step(later, self.rules, bar, self.careful)
            # Whether a first move harms is asked last: it costs most.
            if second is not None and self.careful(state, first.moved):
                exact = first._replace(score=score(later.seen))
                found, bar = (exact, second), second.score
        return found

    def _firsts(self, state: State) -> Iterator[Step]:
        """Yield the moves with the least score of their own."""
        width = beam_width(state, self.rules) if self.beam is None else self.beam
        if supported(state, self.rules):
            return self._scored(state, width)
        steps = legal_steps(state, self.rules)
        return iter(nsmallest(width, steps, key=lambda step: step.score))

    def _scored(self, state: State, width: int) -> Iterator[Step]:
        """Yield them, found by the kernel."""
        self.searcher.best_step(state, self.rules, -inf)  # loads the arrays
        for value, at, verb, target in nsmallest(width, self._offers(state)):
            inst, move = state.insts[at], Move(VERBS[verb], target)
            moved = apply(state.nodes, inst, move, force=self.rules.force)
            if isinstance(moved, Moved):
                yield Step(inst, move, moved, value)

    def _offers(self, state: State) -> Iterator[First]:
        """Yield the score of every move, good to 1e-7."""
        arrays = self.searcher.arrays
        assert arrays is not None  # noqa: S101 - loaded before
        online = [node.idx for node in state.seen if not node.offline]
        may = {inst.idx for inst in movers(state, self.rules)}
        for place, at in enumerate(arrays.movers):
            if at not in may:
                continue
            inst = state.insts[at]
            targets = [to for to in online if to not in (inst.p, inst.s)]
            for verb in possible(state, inst, self.rules):
                goals = [NOWHERE] if verb == VERBS[0] else targets
                places = [arrays.places.get(to, -1) for to in goals]
                code = VERBS.index(verb)
                scores = arrays.kernel.tries(place, code, places, -inf)
                for value, to in zip(scores, goals, strict=True):
                    if value < _REFUSED:
                        yield value, at, code, to
