# SPDX-License-Identifier: BSD-2-Clause
"""Balancing: the best single move, again and again.

`candidates` lists what may be done to an instance in the order that decides
ties; `best_step` tries them all and keeps the first of the best. This module is
the plain definition; `moorage.htools.plans.search` finds the same step faster.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from moorage.htools.constants import Mirror
from moorage.htools.constraints.violation import Violation
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.metrics import least_score, score
from moorage.htools.moves import FA, FAILOVER, FR, FRF, RF, F, Move, Moved, R, apply
from moorage.htools.state import State


class Rules(NamedTuple):
    """What balancing may do, and when it ends.

    Attributes
    ----------
    disk_moves : bool
        Whether data may be copied.
    inst_moves : bool
        Whether primaries may change.
    restricted : bool
        Migrate off offline nodes only.
    evacuate : bool
        Move only instances that have a node offline.
    force : bool
        Skip the checks that protect comfort only.
    min_gain : float
        Least improvement of one step, once the score is below `gain_limit`.
    gain_limit : float
        Score above which any improvement is welcome.
    min_score : float
        How far above the least possible score to stop.
    max_steps : int
        Longest plan; negative for no limit.
    keep_redundancy : bool
        Refuse moves after which a node could no longer be lost, if it could
        before (see `moorage.htools.survival.n1`).
    """

    disk_moves: bool = True
    inst_moves: bool = True
    restricted: bool = False
    evacuate: bool = False
    force: bool = False
    min_gain: float = 0.01
    gain_limit: float = 0.1
    min_score: float = 1e-9
    max_steps: int = -1
    keep_redundancy: bool = True


DEFAULT_RULES: Final = Rules()


class Step(NamedTuple):
    """One step: an instance as it was, what is done, what that changes, the score."""

    before: Inst
    move: Move
    moved: Moved
    score: float


class Plan(NamedTuple):
    """Steps, and where they start and end."""

    start: State
    end: State
    first_score: float
    last_score: float
    steps: list[Step]


Filter = Callable[[State, Moved], bool]
"""Says whether a move may be taken."""

Search = Callable[[State, Rules, float, Filter | None], Step | None]
"""Finds the best step better than a score."""


def movers(state: State, rules: Rules) -> list[Inst]:
    """Return the instances that may move, in order."""
    people = (inst for inst in state.people if inst.movable and inst.auto_balance)
    if not rules.evacuate:
        return list(people)
    gone = {node.idx for node in state.seen if node.offline}
    return [inst for inst in people if gone.intersection(inst.nodes)]


def candidates(state: State, inst: Inst, rules: Rules) -> Iterator[Move]:
    """Yield what may be done to an instance; the first of equals is taken."""
    verbs = possible(state, inst, rules)
    if verbs[:1] == (F,):
        yield FAILOVER
        verbs = verbs[1:]
    for node in state.seen:
        if not node.offline and node.idx not in (inst.p, inst.s):
            yield from (Move(verb, node.idx) for verb in verbs)


def possible(state: State, inst: Inst, rules: Rules) -> tuple[str, ...]:
    """Return the verbs for an instance, in the order that decides ties.

    The plain failover comes first; the others are tried on one target after the
    other.
    """
    if inst.mirror is Mirror.EXTERNAL and rules.inst_moves:
        return (FA,)
    if inst.mirror is not Mirror.INTERNAL:
        return ()
    stays = rules.inst_moves and _online(state, inst.s)
    first = (F,) if stays else ()
    if not rules.disk_moves:
        return first
    return (*first, *_verbs(rules, stays, primary_gone=state.nodes[inst.p].offline))


def _online(state: State, at: int) -> bool:
    return at != NOWHERE and at in state.view and not state.nodes[at].offline


def _verbs(rules: Rules, stays: bool, *, primary_gone: bool) -> tuple[str, ...]:
    """Return the verbs for one target, in the order that decides ties."""
    if not rules.inst_moves or (rules.restricted and not primary_gone):
        return (R,)
    if not stays:
        return (R, RF)
    return (R, RF, FR) if rules.restricted else (R, RF, FRF, FR)


def best_step(
    state: State, rules: Rules, current: float, allowed: Filter | None = None
) -> Step | None:
    """Return the first of the best steps; None when nothing beats `current`."""
    best: Step | None = None
    for step in legal_steps(state, rules):
        if step.score < (best.score if best else current) and (
            allowed is None or allowed(state, step.moved)
        ):
            best = step
    return best


def legal_steps(state: State, rules: Rules) -> Iterator[Step]:
    """Yield every step that no node refuses."""
    for inst in movers(state, rules):
        for move in candidates(state, inst, rules):
            step = legal_step(state, inst.idx, move, rules)
            if step is not None:
                yield step


def legal_step(state: State, at: int, move: Move, rules: Rules) -> Step | None:
    """Return the step of moving instance `at`; None when a node refuses it."""
    inst = state.insts[at]
    moved = apply(state.nodes, inst, move, force=rules.force)
    if isinstance(moved, Violation):
        return None
    return Step(inst, move, moved, score_after(state, moved))


def score_after(state: State, moved: Moved) -> float:
    """Return the score after a move."""
    nodes = moved.on(state.nodes)
    return score([nodes[at] for at in state.view])


def worth(step: Step, current: float, rules: Rules) -> bool:
    """Say whether a step gains enough to be taken."""
    gain = current - step.score
    return step.score < current and (
        current > rules.gain_limit or gain >= rules.min_gain
    )


def balance(
    state: State,
    rules: Rules = DEFAULT_RULES,
    *,
    search: Search = best_step,
    allowed: Filter | None = None,
    told: Callable[[Step, int], None] | None = None,
) -> Plan:
    """Return the greedy plan.

    Parameters
    ----------
    search
        What finds the best step.
    allowed
        Refuses moves that would be best but harm.
    told
        Called with each step and its number, as soon as it is found.
    """
    first = current = score(state.seen)
    goal = least_score(state.seen) + rules.min_score
    steps: list[Step] = []
    end = state
    while current > goal and not 0 <= rules.max_steps <= len(steps):
        step = search(end, rules, current, allowed)
        if step is None or not worth(step, current, rules):
            break
        steps.append(step)
        end, current = end.after(step.moved), step.score
        if told is not None:
            told(step, len(steps))
    return Plan(state, end, first, current, steps)
