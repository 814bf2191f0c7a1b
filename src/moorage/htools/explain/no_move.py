# SPDX-License-Identifier: BSD-2-Clause
"""Why balancing stops: who cannot move at all, and the better moves it refuses."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from math import inf
from typing import Final

from moorage.disk_templates import FACTS
from moorage.htools.constants import fixed
from moorage.htools.constraints.violation import Violation
from moorage.htools.explain.reason import listed
from moorage.htools.incremental_score import Sums
from moorage.htools.inst import Inst
from moorage.htools.metrics import score
from moorage.htools.moves import Move, Moved, apply, why_move
from moorage.htools.node import Node
from moorage.htools.plans.balancing import (
    DEFAULT_RULES,
    Rules,
    Step,
    candidates,
    movers,
    score_after,
    worth,
)
from moorage.htools.plans.plan import letters, place
from moorage.htools.plans.search import Searcher, supported
from moorage.htools.state import State
from moorage.htools.survival.explain_loss import strands
from moorage.htools.survival.keeping import Keeper
from moorage.htools.units import Units

SHOWN: Final = 5
"""Refused moves that are told."""
_AMPLE: Final = 2**40


@dataclass(frozen=True, slots=True)
class Stuck:
    """An instance that cannot move at all.

    Attributes
    ----------
    inst : Inst
        Who.
    why : str
        What holds it.
    findings : tuple of Violation
        Or why each move of it is refused.
    """

    inst: Inst
    why: str = ""
    findings: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedMove:
    """A move that would lower the score, if it were allowed.

    Attributes
    ----------
    step : Step
        The move, with the score after it.
    gain : float
        By how much the score would fall.
    finding : Violation or None
        What refuses it; None when it only gains too little.
    """

    step: Step
    gain: float
    finding: Violation | None


@dataclass(frozen=True, slots=True)
class Unmoved:
    """Why balancing stops.

    Attributes
    ----------
    state : State
        Where it stopped.
    stuck : list of Stuck
        Who cannot move at all.
    refused : list of RefusedMove
        The best moves that are refused, best first.
    next_step : RefusedMove or None
        A move that could still be made; the plan was cut short, or the move gains
        too little.
    """

    state: State
    rules: Rules = DEFAULT_RULES
    stuck: list[Stuck] = field(default_factory=list)
    refused: list[RefusedMove] = field(default_factory=list)
    next_step: RefusedMove | None = None

    def sentences(self) -> list[str]:
        """Return the reasons in words, a line each."""
        lines = [] if self.next_step is None else [self._next(self.next_step)]
        if self.stuck:
            lines += ["Instances that cannot move:", *self._stuck()]
        if self.refused:
            lines.append("Moves that would lower the score, but are refused:")
            lines += [f"  {self._move(one)}" for one in self.refused]
        elif self.next_step is None:
            lines.append("No other move would lower the score.")
        return lines

    def _stuck(self) -> list[str]:
        """Return those who cannot move; who is held by the same shares a line."""
        by: dict[str, list[str]] = {}
        for one in self.stuck:
            by.setdefault(self._held(one), []).append(one.inst.alias)
        return [f"  {listed(names)}: {why}" for why, names in by.items()]

    def _next(self, one: RefusedMove) -> str:
        if worth(one.step, one.step.score + one.gain, self.rules):
            return f"The plan could go on: {self._move(one)}"
        least = f"{self.rules.min_gain:g}"
        return f"The best move gains less than {least}: {self._move(one)}"

    def _move(self, one: RefusedMove) -> str:
        nodes, step = self.state.nodes, one.step
        new = step.moved.inst
        told = (
            f"{step.before.alias} {place(step.before.p, step.before.s, nodes)} => "
            f"{place(new.p, new.s, nodes)} (a={letters(step, nodes)}) "
            f"would lower the score by {fixed(one.gain, 8)}"
        )
        return told if one.finding is None else f"{told}: {self._why(one.finding)}"

    def _why(self, found: Violation) -> str:
        if "strands" in found.facts or found.node < 0:
            return f"refused, {found.sentence()}"
        return f"{self.state.nodes[found.node].alias} refuses, {found.sentence()}"

    def _held(self, one: Stuck) -> str:
        if one.why:
            return one.why
        by: dict[str, list[str]] = {}
        for found in one.findings:
            names = by.setdefault(found.constraint, [])
            names.append(self.state.nodes[found.node].alias)
        return "; ".join(
            f"{what} ({listed(sorted(set(names)))})" for what, names in by.items()
        )


def explain_balance(state: State, rules: Rules = DEFAULT_RULES) -> Unmoved:
    """Return why no better move is made from here.

    Parameters
    ----------
    state
        A group, where balancing stopped.
    """
    found = Unmoved(state, rules, list(_held(state, rules)))
    now = score(state.seen)
    refused = _by_constraint(state, rules, now, found.stuck)
    lost, next_step = _by_loss(state, rules, now)
    found.stuck.sort(key=lambda one: one.inst.idx)
    best = sorted([*refused, *lost], key=lambda one: one.step.score)[:SHOWN]
    return replace(found, refused=best, next_step=next_step)


def _held(state: State, rules: Rules) -> Iterator[Stuck]:
    """Yield those who may not move, whatever the room."""
    for inst in state.people:
        why = _fixed(state, inst, rules)
        if why:
            yield Stuck(inst, why)


def _fixed(state: State, inst: Inst, rules: Rules) -> str:
    """Return what holds an instance; nothing when it may move."""
    apart = inst.s >= 0 and state.nodes[inst.s].group != state.nodes[inst.p].group
    if not FACTS[inst.template].movable:
        return f"disk template {inst.template} is never moved"
    if apart or not inst.movable:
        return "its nodes are in two groups" if apart else "left out by an option"
    if not inst.auto_balance:
        return "auto_balance is off"
    wanted = not rules.evacuate or any(state.nodes[at].offline for at in inst.nodes)
    if wanted and next(candidates(state, inst, rules), None) is None:
        return _targetless(state, inst)
    return ""


def _targetless(state: State, inst: Inst) -> str:
    others = [node for node in state.seen if node.idx not in (inst.p, inst.s)]
    if any(not node.offline for node in others):
        return "options rule out all of its moves"
    return "there is no other online node"


def _by_constraint(
    state: State, rules: Rules, now: float, stuck: list[Stuck]
) -> list[RefusedMove]:
    """Return the best moves that a node refuses; note who has no other."""
    sums = Sums.of(state.seen)

    def tried() -> Iterator[tuple[float, Inst, Move, Violation]]:
        for inst in movers(state, rules):
            moves = list(candidates(state, inst, rules))
            findings = [why_move(state, inst, one, force=rules.force) for one in moves]
            known = [found for found in findings if found is not None]
            if moves and len(known) == len(moves):
                stuck.append(Stuck(inst, findings=tuple(known)))
            for move, found in zip(moves, findings, strict=True):
                after = None if found is None else _roughly(state, sums, inst, move)
                if found is not None and after is not None and after < now:
                    yield after, inst, move, found

    best = nsmallest(SHOWN, tried(), key=lambda one: one[0])
    told = (_exactly(state, now, *one[1:]) for one in best)
    return [one for one in told if one is not None and one.gain > 0]


def _roughly(state: State, sums: Sums, inst: Inst, move: Move) -> float | None:
    """Return the score after a move that is refused, but for last digits."""
    moved = _against_all(state, inst, move)
    if moved is None:
        return None
    if any(node.offline for node in moved.nodes):
        return score_after(state, moved)
    for node in moved.nodes:
        sums = sums.changed(state.nodes[node.idx], node)
    return sums.score()


def _exactly(
    state: State, now: float, inst: Inst, move: Move, found: Violation
) -> RefusedMove | None:
    moved = _against_all(state, inst, move)
    if moved is None:
        return None
    after = score_after(state, moved)
    return RefusedMove(Step(inst, move, moved, after), now - after, found)


def _against_all(state: State, inst: Inst, move: Move) -> Moved | None:
    """Make a move as if there were room for it; None where that makes no sense."""
    nodes = list(state.nodes)
    for at in {inst.p, inst.s, move.target} - {-1}:
        nodes[at] = _eased(nodes[at])
    free = inst.copy(reach=None)
    moved = apply(nodes, free, move, force=True)
    if isinstance(moved, Violation):
        return None
    return Moved(tuple(_restored(node) for node in moved.nodes), moved.inst)


def _eased(node: Node) -> Node:
    return node.copy(
        mem_base=node.mem_base + _AMPLE,
        disk_free=node.disk_free + _AMPLE,
        spindles_free=node.spindles_free + _AMPLE,
        units=_with_room(node.units, _AMPLE),
        mig_from=frozenset(),
    )


def _restored(node: Node) -> Node:
    base = node.mem_base - _AMPLE
    return node.copy(
        mem_base=base,
        disk_free=node.disk_free - _AMPLE,
        spindles_free=node.spindles_free - _AMPLE if node.exclusive else 0,
        units=_with_room(node.units, -_AMPLE),
        fails_n1=base - node.mem_inst <= node.reserved,
    )


def _with_room(units: Units | None, more: int) -> Units | None:
    if units is None:
        return None
    free = tuple(None if one is None else one + more for one in units.free)
    return units._replace(free=free)


def _by_loss(
    state: State, rules: Rules, now: float
) -> tuple[list[RefusedMove], RefusedMove | None]:
    """Return the best moves that survival refuses, and the best that it allows."""
    keeper = Keeper() if rules.keep_redundancy else None
    lost: list[RefusedMove] = []
    allowed: list[RefusedMove] = []
    for step in _better(state, rules, now):
        found = None
        if keeper is not None and not keeper(state, step.moved):
            found = strands(state.after(step.moved), keeper.broken)
        one = RefusedMove(step, now - step.score, found)
        (allowed if found is None else lost).append(one)
    return lost, allowed[0] if allowed else None


def _better(state: State, rules: Rules, now: float) -> Iterable[Step]:
    """Return the best moves that every node accepts."""
    seen: list[Moved] = []
    # The kernel finds the best first, the plain search whatever comes first.
    enough = SHOWN if supported(state, rules) else inf

    def passing(_state: State, moved: Moved) -> bool:
        seen.append(moved)
        return len(seen) >= enough

    Searcher().best_step(state, rules, now, passing)
    best = nsmallest(SHOWN, seen, key=lambda moved: score_after(state, moved))
    return [step for moved in best if (step := _step(state, rules, moved)) is not None]


def _step(state: State, rules: Rules, moved: Moved) -> Step | None:
    """Return the step that leads where a move led."""
    before = state.insts[moved.inst.idx]
    for move in candidates(state, before, rules):
        again = apply(state.nodes, before, move, force=rules.force)
        if isinstance(again, Moved) and again.inst.nodes == moved.inst.nodes:
            return Step(before, move, moved, score_after(state, moved))
    return None
