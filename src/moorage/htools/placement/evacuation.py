# SPDX-License-Identifier: BSD-2-Clause
"""Getting instances away: off their nodes, or into another group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from moorage.htools.constants import Fail, Mirror
from moorage.htools.constraints.violation import Violation
from moorage.htools.inst import Inst
from moorage.htools.metrics import score
from moorage.htools.moves import FA, FAILOVER, Move, Moved, R, apply
from moorage.htools.placement.allocate import Asking
from moorage.htools.placement.evacuation_kernel import Refuges
from moorage.htools.placement.grouping import Nowhere, best_group
from moorage.htools.state import State

PRIMARY, SECONDARY, ALL = "primary-only", "secondary-only", "all"
MODES: Final = (PRIMARY, SECONDARY, ALL)


@dataclass(frozen=True, slots=True)
class Away:
    """How one instance gets away.

    Attributes
    ----------
    inst : Inst
        The instance where it is then.
    moves : tuple of Move
        What to do, in order.
    """

    inst: Inst
    moves: tuple[Move, ...]


@dataclass(slots=True)
class Evacuation:
    """How instances get away, and who cannot.

    Attributes
    ----------
    state : State
        The cluster afterwards.
    away : list of Away
        Who gets away, in the order asked.
    stuck : list of (int, str)
        Who does not, and why.
    """

    state: State
    away: list[Away] = field(default_factory=list)
    stuck: list[tuple[int, str]] = field(default_factory=list)


class _Stuck(Exception):
    """An instance cannot get away; the text says why."""


@dataclass(frozen=True, slots=True)
class _Way:
    """Where an instance may go, and how.

    Attributes
    ----------
    group : int
        The group that it goes to, or stays in.
    open_nodes : list of int
        The nodes there that may take it, in order.
    refuges : Refuges or None
        What finds the best of them fast, if anything does.
    """

    mode: str
    group: int
    open_nodes: list[int]
    force: bool
    refuges: Refuges | None = None


def evacuate(
    state: State, insts: Sequence[int], mode: str, *, force: bool = False
) -> Evacuation:
    """Move instances off their nodes, within their groups.

    Parameters
    ----------
    insts
        Who, by index.
    mode
        ``primary-only``, ``secondary-only`` or ``all`` of their nodes.
    """
    closed = left_nodes(state, insts, mode) | _offline(state)
    groups = dict.fromkeys(state.nodes[state.insts[at].p].group for at in insts)
    known = {at: Refuges.of(state, at, insts, force=force) for at in groups}
    result = Evacuation(state)
    for at in insts:
        inst = state.insts[at]
        group = state.nodes[inst.p].group
        open_nodes = _open(state, group, closed | {inst.p})
        _one(result, at, _Way(mode, group, open_nodes, force, known[group]))
    return result


def evacuate_to(state: State, targets: Mapping[int, int], mode: str) -> Evacuation:
    """Move instances off their nodes, each to the node that is named for it.

    Parameters
    ----------
    targets
        The node of each instance, by index.
    mode
        ``primary-only`` or ``secondary-only``. With its first mode a mirrored instance
        goes to its secondary node, whatever is named.
    """
    result = Evacuation(state)
    for at, target in targets.items():
        inst = result.state.insts[at]
        group = state.nodes[target].group
        closed = {inst.p, *_offline(state)}
        open_nodes = [one for one in (target,) if one not in closed]
        _one(result, at, _Way(mode, group, open_nodes, force=False))
    return result


def change_group(
    state: State, insts: Sequence[int], groups: Sequence[int], asking: Asking
) -> Evacuation:
    """Move instances into the best of some other groups; any when none is named."""
    left = {state.nodes[state.insts[at].p].group for at in insts}
    wanted = groups or range(len(state.groups))
    allowed = [group for group in wanted if group not in left]
    closed = _offline(state)
    result = Evacuation(state)
    for at in insts:
        inst = result.state.insts[at]
        found = best_group(result.state, inst, asking, allowed)
        if isinstance(found, Nowhere):
            result.stuck.append((at, found.why))
            continue
        open_nodes = _open(state, found.group, closed)
        _one(result, at, _Way(ALL, found.group, open_nodes, force=False))
    return result


def _one(result: Evacuation, at: int, way: _Way) -> None:
    """Move one instance away, or note why it is stuck."""
    try:
        away, after = _send(result.state, at, way)
    except _Stuck as stuck:
        result.stuck.append((at, str(stuck)))
        return
    result.state = after
    result.away.append(away)


def left_nodes(state: State, insts: Iterable[int], mode: str) -> set[int]:
    """Return the nodes that are being left."""
    people = [state.insts[at] for at in insts]
    left: set[int] = set()
    if mode != SECONDARY:
        left |= {inst.p for inst in people}
    if mode != PRIMARY:
        left |= {inst.s for inst in people if inst.mirror is Mirror.INTERNAL}
    return left


def _offline(state: State) -> set[int]:
    return {node.idx for node in state.seen if node.offline}


def _open(state: State, group: int, closed: set[int]) -> list[int]:
    return [
        at for at in state.view if state.nodes[at].group == group and at not in closed
    ]


def _send(state: State, at: int, way: _Way) -> tuple[Away, State]:
    """Return how an instance gets away, and the state afterwards."""
    inst = state.insts[at]
    if inst.mirror is Mirror.NONE:
        raise _Stuck(f"Instances of type {inst.template} cannot be relocated")
    if inst.mirror is not Mirror.INTERNAL:
        if way.mode == SECONDARY:
            raise _Stuck(
                f"Instances with disk template '{inst.template}' can't execute "
                "change secondary"
            )
        return _best(state, inst, FA, way)
    if way.mode == PRIMARY:
        return _failover(state, inst, way.force)
    if way.mode == SECONDARY:
        return _best(state, inst, R, way)
    return _both(state, inst, way)


def _failover(state: State, inst: Inst, force: bool) -> tuple[Away, State]:
    moved = apply(state.nodes, inst, FAILOVER, force=force)
    if isinstance(moved, Violation):
        raise _Stuck(moved.fail.value)
    return Away(moved.inst, (FAILOVER,)), state.after(moved)


def _best(state: State, inst: Inst, verb: str, way: _Way) -> tuple[Away, State]:
    """Return the best move to one of some nodes; ties go to the last."""
    known = way.refuges
    if known is not None and known.knows(inst, way.open_nodes):
        target = known.best_node(state, inst, verb, way.open_nodes)
    else:
        target = _best_node(state, inst, verb, way)
    if target is None:
        raise _Stuck("Can't find any good node: " + _refusals(state, inst, verb, way))
    move = Move(verb, target)
    moved = _done(apply(state.nodes, inst, move, force=way.force))
    return Away(moved.inst, (move,)), state.after(moved)


def _best_node(state: State, inst: Inst, verb: str, way: _Way) -> int | None:
    """Return the last of the best nodes, every one tried; None when all refuse."""
    best: int | None = None
    least = 0.0
    for at in way.open_nodes:
        moved = apply(state.nodes, inst, Move(verb, at), force=way.force)
        if isinstance(moved, Violation):
            continue
        after = group_score(state, moved, way.group)
        if best is None or not least < after:
            best, least = at, after
    return best


def _refusals(state: State, inst: Inst, verb: str, way: _Way) -> str:
    """Say of each node why it does not take an instance."""
    text = ""
    for at in way.open_nodes:
        fail = apply(state.nodes, inst, Move(verb, at), force=way.force)
        if isinstance(fail, Violation):
            text += f" Node {state.nodes[at].name} failed: {fail.fail.value};"
    return text


def _done(moved: Moved | Violation) -> Moved:
    """Return what a move changes that must be possible."""
    if isinstance(moved, Violation):
        # Two answers to one question: better no answer.
        raise RuntimeError(f"refused after all: {moved}")  # noqa: TRY004
    return moved


def group_score(state: State, moved: Moved, group: int) -> float:
    """Return the score of one group after a move."""
    nodes = moved.on(state.nodes)
    return score([nodes[at] for at in state.view if nodes[at].group == group])


def _both(state: State, inst: Inst, way: _Way) -> tuple[Away, State]:
    """Return the best new pair of nodes for a mirrored instance."""
    known = way.refuges
    if known is not None and known.knows(inst, way.open_nodes):
        pair = known.best_pair(state, inst, way.open_nodes)
    else:
        pair = _best_pair(state, inst, way)
    if pair is None:
        why = _no_pair(state, inst, way)
        raise _Stuck(f"Can't find any good nodes for relocation: {why}")
    return _arrived(state, inst, pair, way.force)


def _best_pair(state: State, inst: Inst, way: _Way) -> tuple[int, int] | None:
    """Return the last of the best pairs, every one tried; None when all refuse."""
    best: tuple[int, int] | None = None
    least = 0.0
    for p in way.open_nodes:
        there = to_primary(state, inst, p, force=way.force)
        if not isinstance(there, State):
            continue
        for s in (at for at in way.open_nodes if at != p):
            moved = _to_secondary(there, inst, s, way.force)
            if isinstance(moved, Violation):
                continue
            after = group_score(there, moved, way.group)
            if best is None or not least < after:
                best, least = (p, s), after
    return best


def _no_pair(state: State, inst: Inst, way: _Way) -> str:
    """Say why the last of the pairs will not do, when none does."""
    if len(way.open_nodes) < 2:
        return "no nodes available"
    *_, s, p = way.open_nodes
    there = to_primary(state, inst, p, force=way.force)
    if not isinstance(there, State):
        step, found = there
        return f"Allocation failed: {_DOING[step]}: {found.fail.value}"
    fail = _to_secondary(there, inst, s, way.force)
    why = fail.fail.value if isinstance(fail, Violation) else Fail.INTERNAL.value
    return f"Allocation failed: Changing secondary to final secondary: {why}"


FIRST, COPY, OVER = range(3)
"""What is done with an instance that gets to a new primary; the first if need be."""
_DOING: Final = (
    "Failing over to the secondary",
    "Changing secondary to new primary",
    "Failing over to new primary",
)


def _steps(state: State, inst: Inst, p: int) -> list[tuple[int, Move]]:
    """Return how an instance gets to a new primary: what is done, and the move."""
    steps = [(COPY, Move(R, p)), (OVER, FAILOVER)]
    return [(FIRST, FAILOVER), *steps] if state.nodes[inst.p].offline else steps


def to_primary(
    state: State, inst: Inst, p: int, *, force: bool
) -> State | tuple[int, Violation]:
    """Bring an instance to its new primary, or say at which step that ends, and why."""
    for step, move in _steps(state, inst, p):
        now = state.insts[inst.idx]
        moved = apply(state.nodes, now, move, force=force, names=state)
        if isinstance(moved, Violation):
            return step, moved
        state = state.after(moved)
    return state


def _to_secondary(there: State, inst: Inst, s: int, force: bool) -> Moved | Violation:
    return apply(there.nodes, there.insts[inst.idx], Move(R, s), force=force)


def _arrived(
    state: State, inst: Inst, pair: tuple[int, int], force: bool
) -> tuple[Away, State]:
    """Bring an instance to a pair of nodes."""
    moves = [*(move for _, move in _steps(state, inst, pair[0])), Move(R, pair[1])]
    for move in moves:
        moved = _done(apply(state.nodes, state.insts[inst.idx], move, force=force))
        state = state.after(moved)
    return Away(state.insts[inst.idx], tuple(moves)), state
