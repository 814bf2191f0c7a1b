# SPDX-License-Identifier: BSD-2-Clause
"""An allocator's answer explained: each no with its why, for every request."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moorage.htools.constants import Fail, Mirror
from moorage.htools.constraints.violation import Violation, is_away
from moorage.htools.explain.explain import (
    Explanation,
    explain_place,
    reasons,
    refusal_reasons,
)
from moorage.htools.explain.node_remedy import node_change
from moorage.htools.explain.reason import Reason
from moorage.htools.explain.skipped import untried
from moorage.htools.inst import Inst
from moorage.htools.moves import FA, FAILOVER, Move, Moved, R, apply, why_move
from moorage.htools.placement.allocate import Asking
from moorage.htools.placement.evacuation import (
    ALL,
    COPY,
    FIRST,
    OVER,
    PRIMARY,
    SECONDARY,
    Evacuation,
    change_group,
    evacuate,
    left_nodes,
    to_primary,
)
from moorage.htools.placement.grouping import Chosen, best_group
from moorage.htools.placement.requests import (
    Allocate,
    AllocateSecondary,
    ChangeGroup,
    MultiAllocate,
    NodeEvacuate,
    Relocate,
    Request,
    Response,
    answer,
    unplaced,
)
from moorage.htools.state import State

_DOING: Final = {FIRST: "fail over first", COPY: "copy the data", OVER: "fail over"}

Done = Callable[[State], Evacuation]
"""Does the evacuation again, in some cluster."""


def explained(request: Request, told: Sequence[Explanation]) -> Any:  # noqa: ANN401
    """Return explanations as JSON values.

    For requests about several instances: a list of those that were refused.
    """
    if isinstance(request, Allocate | AllocateSecondary):
        return told[0].values()
    return {"instances": [{"name": one.name} | one.values() for one in told]}


def explain(
    state: State, request: Request, response: Response, asking: Asking
) -> list[Explanation]:
    """Return why each instance of a request is refused."""
    told = list(_explained(state, request, response, asking))
    if response.success or any(one.reasons for one in told):
        return told
    why = response.info.removeprefix("Request failed: ")
    return [Explanation((Reason((), "not possible", {"why": why}),))]


def _explained(
    state: State, request: Request, response: Response, asking: Asking
) -> Iterator[Explanation]:
    match request:
        case Allocate():
            for found in response.allocations:
                yield explain_place(state, request, asking, found)
        case MultiAllocate():
            yield from _several(state, request, response, asking)
        case AllocateSecondary():
            yield from _second(state, request, response, asking)
        case _:
            yield from _moving(state, request, asking)


def _several(
    state: State, request: MultiAllocate, response: Response, asking: Asking
) -> Iterator[Explanation]:
    """Explain each new instance that went nowhere, where the others are by then."""
    for one, found in zip(request.requests, response.allocations, strict=False):
        if found.best is None:
            yield explain_place(state, one, asking, found)
        else:
            state = state.with_new(found.best.moved)


def _second(
    state: State, request: AllocateSecondary, response: Response, asking: Asking
) -> Iterator[Explanation]:
    """Explain why nobody keeps a second copy."""
    old = state.insts[request.inst]
    without, inst = unplaced(state, old)
    told = [
        reason
        for found in response.allocations
        for reason in reasons(without, inst, found, force=asking.force)
    ]
    told += _offline(state, state.nodes[old.p].group, {old.p})
    change = None
    if not response.success:
        change = node_change(
            state, lambda here: answer(here, request, asking).success, _checks(told)
        )
    yield Explanation(tuple(told), change, old.name)


def _checks(told: Sequence[Reason]) -> list[Violation]:
    return [reason.finding for reason in told if reason.finding is not None]


def _offline(state: State, group: int, but: set[int]) -> Iterator[Reason]:
    for at in state.view:
        node = state.nodes[at]
        if node.offline and node.group == group and at not in but:
            yield _reason(state, is_away(at))


def _reason(state: State, found: Violation, *nodes: int, step: str = "") -> Reason:
    names = tuple(state.nodes[at].name for at in nodes or (found.node,) if at >= 0)
    facts = found.facts | ({"step": step} if step else {})
    if step:
        found = found._replace(facts=facts)
    return Reason(names, found.constraint, facts, finding=found)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Who is to leave, and how.

    Attributes
    ----------
    closed : frozenset of int
        Nodes that are being left.
    """

    insts: tuple[int, ...]
    mode: str
    closed: frozenset[int]
    force: bool


def _moving(
    state: State, request: Relocate | NodeEvacuate | ChangeGroup, asking: Asking
) -> Iterator[Explanation]:
    if isinstance(request, ChangeGroup):
        insts, mode = request.insts, ALL

        def done(here: State) -> Evacuation:
            return change_group(here, insts, request.groups, asking)
    else:
        insts, mode = _leavers(state, request)

        def done(here: State) -> Evacuation:
            return evacuate(here, insts, mode, force=asking.force)

    closed = (
        frozenset()
        if isinstance(request, ChangeGroup)
        else frozenset(left_nodes(state, insts, mode))
    )
    force = asking.force and not isinstance(request, ChangeGroup)
    leaving = _Leaving(insts, mode, closed, force)
    for here, at in _stuck(state, done(state), leaving):
        inst = here.insts[at]
        if isinstance(request, ChangeGroup):
            told = list(_nowhere(here, inst, request, leaving, asking))
        else:
            told = list(_no_way(here, inst, leaving, here.nodes[inst.p].group))
        change = node_change(state, _helps(done, at), _checks(told))
        yield Explanation(tuple(told), change, inst.name)


def _leavers(
    state: State, request: Relocate | NodeEvacuate
) -> tuple[tuple[int, ...], str]:
    if isinstance(request, NodeEvacuate):
        return request.insts, request.mode
    mirrored = state.insts[request.inst].mirror is Mirror.INTERNAL
    return (request.inst,), SECONDARY if mirrored else PRIMARY


def _helps(done: Done, at: int) -> Callable[[State], bool]:
    return lambda here: all(stuck != at for stuck, _ in done(here).stuck)


def _stuck(
    state: State, done: Evacuation, leaving: _Leaving
) -> Iterator[tuple[State, int]]:
    """Yield who is stuck, with the cluster as it is when their turn comes."""
    away = {one.inst.idx: one.moves for one in done.away}
    stuck = {at for at, _ in done.stuck}
    for at in leaving.insts:
        if at in stuck:
            yield state, at
        for move in away.get(at, ()):
            moved = apply(state.nodes, state.insts[at], move, force=leaving.force)
            if isinstance(moved, Moved):
                state = state.after(moved)


def _no_way(
    state: State, inst: Inst, leaving: _Leaving, group: int
) -> Iterator[Reason]:
    """Yield why an instance cannot leave its node for another of a group."""
    name = state.groups[group].name
    internal = inst.mirror is Mirror.INTERNAL
    never = _never(inst, leaving.mode)
    if never:
        yield Reason((), never, {"template": inst.template}, group=name)
        return
    if internal and leaving.mode == PRIMARY:
        found = why_move(state, inst, FAILOVER, force=leaving.force)
        yield from [] if found is None else [_reason(state, found)]
        return
    open_nodes = _open(state, inst, group, leaving)
    if not open_nodes:
        yield Reason((), "no other node", {}, group=name)
    elif internal and leaving.mode == ALL:
        yield from _chains(state, inst, open_nodes, force=leaving.force)
    else:
        yield from _elsewhere(state, inst, open_nodes, force=leaving.force)
    yield from _being_left(state, inst, group, leaving)


def _never(inst: Inst, mode: str) -> str:
    """Return why an instance cannot leave at all, whatever the room."""
    if inst.mirror is Mirror.NONE:
        return "data on one node only"
    no_second = inst.mirror is not Mirror.INTERNAL and mode == SECONDARY
    return "no second copy" if no_second else ""


def _elsewhere(
    state: State, inst: Inst, open_nodes: Sequence[int], *, force: bool
) -> Iterator[Reason]:
    """Yield why single nodes do not take an instance, or its second copy."""
    verb = R if inst.mirror is Mirror.INTERNAL else FA
    for at in open_nodes:
        found = why_move(state, inst, Move(verb, at), force=force)
        if found is not None:
            yield _reason(state, found, at)


def _open(state: State, inst: Inst, group: int, leaving: _Leaving) -> list[int]:
    closed = leaving.closed | ({inst.p} if leaving.closed else set())
    return [
        at
        for at in state.view
        if state.nodes[at].group == group
        and at not in closed
        and not state.nodes[at].offline
    ]


def _being_left(
    state: State, inst: Inst, group: int, leaving: _Leaving
) -> Iterator[Reason]:
    yield from _offline(state, group, set())
    for at in sorted(leaving.closed - {inst.p}):
        node = state.nodes[at]
        if node.group == group and not node.offline:
            yield _reason(state, Violation(at, Fail.INTERNAL, "being left itself", {}))


def _chains(
    state: State, inst: Inst, open_nodes: Sequence[int], *, force: bool
) -> Iterator[Reason]:
    """Yield where the way to each new pair of nodes ends."""
    for p in open_nodes:
        here = to_primary(state, inst, p, force=force)
        if not isinstance(here, State):
            step, refused = here
            yield _reason(state, refused, p, step=_DOING[step])
            continue
        for s in open_nodes:
            new = here.insts[inst.idx]
            found = None if s == p else why_move(here, new, Move(R, s), force=force)
            if found is not None:
                yield _reason(state, found, p, s, step="second copy")
    if len(open_nodes) == 1:
        name = state.groups[state.nodes[inst.p].group].name
        facts = {"usable": [state.nodes[at].name for at in open_nodes], "needed": 2}
        yield Reason((), "too few nodes", facts, group=name)


def _nowhere(
    state: State,
    inst: Inst,
    request: ChangeGroup,
    leaving: _Leaving,
    asking: Asking,
) -> Iterator[Reason]:
    """Yield why no other group takes an instance."""
    homes = {state.nodes[state.insts[at].p].group for at in request.insts}
    wanted = request.groups or range(len(state.groups))
    allowed = [group for group in wanted if group not in homes]
    found = best_group(state, inst, asking, allowed)
    if isinstance(found, Chosen):
        yield from _no_way(state, inst, leaving, found.group)
        return
    for one in found.tried:
        yield from refusal_reasons(state, inst, one.refusals, force=asking.force)
    row = state.fleet.instances[inst.idx]
    asked = Allocate(row, len(inst.nodes))
    for group in allowed:
        yield from untried(state.group_view(group), inst, asked, asking)
    if not allowed:
        homes_named = ", ".join(state.groups[at].name for at in sorted(homes))
        yield Reason((), "no other group", {}, group=homes_named)
