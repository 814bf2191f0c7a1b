# SPDX-License-Identifier: BSD-2-Clause
"""The same placement in fewer moves: an instance that moves twice moves once.

An instance passes through places, ``p0:s0``, ``p1:s1``, and so on. Its *route*
is the shortest way through some of them that single moves allow. The moves of
all routes keep the order of the plan as far as every check allows: a move is
legal, no node fails N+1 that did not in the plan as it was, and what can be lost
stays losable (unless the plan as it was ends otherwise). Of the
next few moves that are safe the best goes first. Where no safe order is found,
some instances keep their old moves; with all of them that is the plan itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Self

from moorage.htools.constants import Mirror
from moorage.htools.inst import Inst
from moorage.htools.metrics import score
from moorage.htools.moves import FA, FAILOVER, FR, FRF, RF, Move, R
from moorage.htools.plans.balancing import (
    DEFAULT_RULES,
    Plan,
    Rules,
    Step,
    candidates,
    legal_step,
)
from moorage.htools.plans.steps import careful, short_nodes
from moorage.htools.state import State
from moorage.htools.survival.keeping import Losing

WINDOW: Final = 4
"""Of how many moves that could come next the best one does."""


def compacted(plan: Plan, rules: Rules = DEFAULT_RULES) -> Plan:
    """Return a plan to the same placement, with fewer moves where that can be.

    Parameters
    ----------
    rules
        Those that the plan was made with.

    Returns
    -------
    Plan
        The very same one when nothing can be saved. The score is given after
        each step; it need not fall from every step to the next.
    """
    merger = _Merger(plan, rules)
    merger.merge([at for at, route in merger.routes.items() if route.is_shorter])
    if len(merger.steps) >= len(plan.steps):
        return plan
    end = plan.start
    for step in merger.steps:
        end = end.after(step.moved)
    steps = list(merger.steps)
    return plan._replace(end=end, last_score=score(end.seen), steps=steps)


@dataclass(frozen=True, slots=True)
class Leg:
    """One move of an instance, in its turn.

    Attributes
    ----------
    turn : int
        The step of the plan whose place it takes, from 0.
    inst, to : Inst
        The instance before it and after it.
    move : Move
        What is done.
    """

    turn: int
    inst: Inst
    to: Inst
    move: Move


Legs = tuple[Leg, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """How one instance gets from its first place to its last.

    Attributes
    ----------
    old : tuple of Leg
        As the plan has it.
    new : tuple of Leg
        The shortest.
    """

    old: Legs
    new: Legs

    @classmethod
    def of(cls, state: State, old: Legs, rules: Rules) -> Self:
        """Return the route with the fewest moves through places of the old one.

        Parameters
        ----------
        state
            Any state of the plan: it only says which nodes are online.
        """
        best: list[Legs] = [()]
        for at in range(1, len(old) + 1):
            ways = [
                best[start] + hop
                for start in range(at)
                if (hop := _hop(state, old[start:at], rules)) is not None
            ]
            best.append(min(ways, key=len))
        return cls(old, best[-1])

    @property
    def is_shorter(self) -> bool:
        """Whether it saves anything."""
        return len(self.new) < len(self.old)


def _journeys(steps: Sequence[Step]) -> dict[int, Legs]:
    """Return the moves of each instance, by its index."""
    found: dict[int, Legs] = {}
    for turn, step in enumerate(steps):
        leg = Leg(turn, step.before, step.moved.inst, step.move)
        found[step.before.idx] = (*found.get(step.before.idx, ()), leg)
    return found


def _hop(state: State, legs: Legs, rules: Rules) -> Legs | None:
    """Return moves of an instance as one, or none; None when that cannot be."""
    first, to = legs[0], legs[-1].to
    if len(legs) == 1:
        return legs
    if (first.inst.p, first.inst.s) == (to.p, to.s):
        return ()
    move = direct(first.inst, to.p, to.s)
    if move is None or move not in candidates(state, first.inst, rules):
        return None
    return (Leg(first.turn, first.inst, to, move),)


def direct(inst: Inst, p: int, s: int) -> Move | None:
    """Return the one move of an instance to another place, if there is one.

    Parameters
    ----------
    p, s
        Indices of its primary and secondary then; not those of now.
    """
    if inst.mirror is not Mirror.INTERNAL:
        return Move(FA, p)
    moves = {
        (inst.p, s): Move(R, s),
        (p, inst.p): Move(RF, p),
        (p, inst.s): Move(FRF, p),
        (inst.s, s): Move(FR, s),
        # Last: it is like two of the others, towards a node it has already.
        (inst.s, inst.p): FAILOVER,
    }
    return moves.get((p, s))


class _Merger:
    """A plan, and the instances whose shortest routes it takes so far."""

    def __init__(self, plan: Plan, rules: Rules) -> None:
        self.plan = plan
        self.rules = rules
        self.steps: Sequence[Step] = plan.steps
        self.merged: frozenset[int] = frozenset()
        self.routes = {
            at: Route.of(plan.start, legs, rules)
            for at, legs in _journeys(plan.steps).items()
        }
        losing = Losing()
        # A greedy plan may end otherwise without shared storage: there only the
        # score decides.
        guarded = rules.keep_redundancy and losing.keeps(plan.start, plan.end)
        excused = short_nodes(plan.start, plan.steps)
        self.allowed = careful(*([losing] if guarded else []), excused=excused)

    def merge(self, some: Sequence[int]) -> None:
        """Let some more instances take their shortest routes, or as many as can."""
        if not some:
            return
        wanted = self.merged | frozenset(some)
        steps = self._ordered(wanted, WINDOW) or self._ordered(wanted, 1)
        if steps is not None:
            self.merged, self.steps = wanted, steps
        elif len(some) > 1:
            half = len(some) // 2
            self.merge(some[:half])
            self.merge(some[half:])

    def _ordered(self, merged: frozenset[int], window: int) -> list[Step] | None:
        """Return all moves in a safe order; None when the search gets stuck."""
        state, steps = self.plan.start, list[Step]()
        legs = [
            leg
            for at, route in self.routes.items()
            for leg in (route.new if at in merged else route.old)
        ]
        pending = sorted(legs, key=lambda leg: leg.turn)
        while pending:
            found = self._next(state, pending, window)
            if found is None:
                return None
            place, step = found
            del pending[place]
            steps.append(step)
            state = state.after(step.moved)
        return steps

    def _next(
        self, state: State, pending: Sequence[Leg], window: int
    ) -> tuple[int, Step] | None:
        """Return the best of the first moves that are safe now, and its place."""
        offers = self._legal(state, pending)
        while some := list(islice(offers, window)):
            for place, step in sorted(some, key=lambda offer: offer[1].score):
                if self.allowed(state, step.moved):
                    return place, step
        return None

    def _legal(
        self, state: State, pending: Sequence[Leg]
    ) -> Iterator[tuple[int, Step]]:
        """Yield the moves that no node refuses now; of an instance, the first."""
        seen = set[int]()
        for place, leg in enumerate(pending):
            at = leg.inst.idx
            if at not in seen:
                seen.add(at)
                step = legal_step(state, at, leg.move, self.rules)
                if step is not None:
                    yield place, step
