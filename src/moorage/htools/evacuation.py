# SPDX-License-Identifier: BSD-2-Clause
"""Getting instances away: off their nodes, or into another group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from moorage.htools.allocate import Asking
from moorage.htools.grid import COMPILED, Grid, is_plain, plain_nodes
from moorage.htools.grouping import Nowhere, best_group
from moorage.htools.inst import Inst
from moorage.htools.metrics import score
from moorage.htools.moves import FA, FAILOVER, Move, Moved, R, apply
from moorage.htools.state import State
from moorage.htools.words import Fail, Mirror

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
    closed = _left(state, insts, mode) | _offline(state)
    result = Evacuation(state)
    for at in insts:
        inst = state.insts[at]
        group = state.nodes[inst.p].group
        open_nodes = _open(state, group, closed | {inst.p})
        _one(result, at, mode, group, open_nodes, force=force)
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
        _one(result, at, ALL, found.group, open_nodes, force=False)
    return result


def _one(
    result: Evacuation,
    at: int,
    mode: str,
    group: int,
    open_nodes: list[int],
    *,
    force: bool,
) -> None:
    """Move one instance away, or note why it is stuck."""
    try:
        away, after = _send(result.state, at, mode, group, open_nodes, force)
    except _Stuck as stuck:
        result.stuck.append((at, str(stuck)))
        return
    result.state = after
    result.away.append(away)


def _left(state: State, insts: Iterable[int], mode: str) -> set[int]:
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


def _send(
    state: State, at: int, mode: str, group: int, open_nodes: list[int], force: bool
) -> tuple[Away, State]:
    """Return how an instance gets away, and the state afterwards."""
    inst = state.insts[at]
    if inst.template in ("plain", "file"):
        raise _Stuck(f"Instances of type {inst.template} cannot be relocated")
    if inst.mirror is not Mirror.INTERNAL:
        if mode == SECONDARY:
            raise _Stuck(
                f"Instances with disk template '{inst.template}' can't execute "
                "change secondary"
            )
        return _best(state, inst, FA, group, open_nodes, force)
    if mode == PRIMARY:
        return _failover(state, inst, force)
    if mode == SECONDARY:
        return _best(state, inst, R, group, open_nodes, force)
    return _both(state, inst, group, open_nodes, force)


def _failover(state: State, inst: Inst, force: bool) -> tuple[Away, State]:
    moved = apply(state.nodes, inst, FAILOVER, force=force)
    if isinstance(moved, Fail):
        raise _Stuck(moved.value)
    return Away(moved.inst, (FAILOVER,)), state.after(moved)


def _best(
    state: State, inst: Inst, verb: str, group: int, open_nodes: list[int], force: bool
) -> tuple[Away, State]:
    """Return the best move to one of some nodes; ties go to the last."""
    best: tuple[Move, Moved] | None = None
    least, complaint = 0.0, ""
    for at in open_nodes:
        move = Move(verb, at)
        moved = apply(state.nodes, inst, move, force=force)
        if isinstance(moved, Fail):
            complaint += f" Node {state.nodes[at].name} failed: {moved.value};"
            continue
        after = group_score(state, moved, group)
        if best is None or not least < after:
            best, least = (move, moved), after
    if best is None:
        raise _Stuck(f"Can't find any good node: {complaint}")
    return Away(best[1].inst, (best[0],)), state.after(best[1])


def group_score(state: State, moved: Moved, group: int) -> float:
    """Return the score of one group after a move."""
    nodes = moved.on(state.nodes)
    return score([nodes[at] for at in state.view if nodes[at].group == group])


def _both(
    state: State, inst: Inst, group: int, open_nodes: list[int], force: bool
) -> tuple[Away, State]:
    """Return the best new pair of nodes for a mirrored instance."""
    pairs = Pairs.of(state, inst, group, force=force)
    best: tuple[list[Move], State] | None = None
    least, complaint = 0.0, "no nodes available"
    for p in open_nodes:
        reached = _to_primary(state, inst, p, force)
        others = [s for s in open_nodes if s != p]
        if isinstance(reached, str):
            complaint = "Allocation failed: " + reached if others else complaint
            continue
        moves, there = reached
        for s, after in _last_legs(there, inst.idx, others, group, force, pairs):
            if isinstance(after, Fail):
                complaint = f"Allocation failed: {_LAST_LEG}: {after.value}"
            elif best is None or not least < after:
                best, least = ([*moves, Move(R, s)], there), after
        if pairs is not None and best is not None:
            pairs.least = least
    if best is None:
        raise _Stuck(f"Can't find any good nodes for relocation: {complaint}")
    return _arrived(best[0], best[1], inst.idx, force)


_LAST_LEG: Final = "Changing secondary to final secondary"


def _to_primary(
    state: State, inst: Inst, p: int, force: bool
) -> tuple[list[Move], State] | str:
    """Bring an instance to its new primary; a text says what failed."""
    steps = [
        ("Changing secondary to new primary", Move(R, p)),
        ("Failing over to new primary", FAILOVER),
    ]
    if state.nodes[inst.p].offline:
        steps.insert(0, ("Failing over to the secondary", FAILOVER))
    for what, move in steps:
        moved = apply(state.nodes, state.insts[inst.idx], move, force=force)
        if isinstance(moved, Fail):
            return f"{what}: {moved.value}"
        state = state.after(moved)
    return [move for _, move in steps], state


def _last_legs(
    there: State,
    at: int,
    others: Sequence[int],
    group: int,
    force: bool,
    pairs: "Pairs | None",
) -> Iterable[tuple[int, float | Fail]]:
    """Yield the score with each final secondary, or why it cannot be."""
    if pairs is not None:
        yield from pairs.scores(there, others)
        return
    for s in others:
        moved = apply(there.nodes, there.insts[at], Move(R, s), force=force)
        score_or = (
            moved if isinstance(moved, Fail) else group_score(there, moved, group)
        )
        yield s, score_or


def _arrived(
    moves: list[Move], there: State, at: int, force: bool
) -> tuple[Away, State]:
    moved = apply(there.nodes, there.insts[at], moves[-1], force=force)
    if isinstance(moved, Fail):
        raise _Stuck(moved.value)
    return Away(moved.inst, tuple(moves)), there.after(moved)


class Pairs:
    """Final secondaries of one instance, scored by the kernel.

    Attributes
    ----------
    least : float
        The best score so far.
    """

    def __init__(self, view: State, inst: Inst, *, force: bool) -> None:
        self.last = view
        self.at = inst.idx
        self.force = force
        self.least = inf
        self.grid = Grid(view, [inst], _no_verbs, force=force)

    @classmethod
    def of(cls, state: State, inst: Inst, group: int, *, force: bool) -> "Pairs | None":
        """Return the scorer; None where the kernel does not model the question."""
        view = state.group_view(group)
        if not COMPILED or not view.view or not plain_nodes(view):
            return None
        return cls(view, inst, force=force) if is_plain(inst, set(view.view)) else None

    def scores(
        self, there: State, others: Sequence[int]
    ) -> Iterable[tuple[int, float | Fail]]:
        """Yield what `_last_legs` does; rough scores where they cannot win."""
        now = replace(there, view=self.last.view, members=self.last.members)
        self.grid.renew(self.last, now, _no_verbs)
        self.last = now
        places = [self.grid.places[s] for s in others]
        scores = self.grid.kernel.tries(0, 2, places, self.least)
        for s, found in zip(others, scores, strict=True):
            yield s, found if found < _REFUSED else self._why(now, s)

    def _why(self, now: State, s: int) -> Fail:
        inst = now.insts[self.at]
        moved = apply(now.nodes, inst, Move(R, s), force=self.force)
        return moved if isinstance(moved, Fail) else Fail.INTERNAL


_REFUSED: Final = 1e299


def _no_verbs(_inst: Inst) -> int:
    return 0
