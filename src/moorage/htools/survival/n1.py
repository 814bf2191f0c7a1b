# SPDX-License-Identifier: BSD-2-Clause
"""Survival: whether a node can be lost, and where everybody restarts then.

Losing a node is simulated, not counted: its mirrored instances fail over to
their secondaries, then its instances on shared storage restart one by one on
the node that is best for the score, then local ones are made anew, the largest
first; of equals the last of the cluster begins, whoever came to the node when.
What is placed takes its room before the next one is tried, so offcuts
count. Nobody restarts on an offline or drained node, nor where one of their
disks cannot be used. Instances of other nodes do not move.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from moorage.htools.constants import Fail, Mirror
from moorage.htools.constraints.violation import Violation, is_away
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.metrics import score
from moorage.htools.moves import FA, FAILOVER, Move, Moved, apply
from moorage.htools.single_placement import Placement, place_one
from moorage.htools.state import State
from moorage.htools.survival.kernel_losses import Losses, in_order, is_shared


@dataclass(frozen=True, slots=True)
class Restart:
    """Where an instance restarts after a loss.

    Attributes
    ----------
    inst : int
        The instance.
    node : int
        Where it runs then; -1 when nobody can take it.
    left : int
        Memory that its node has left then, MiB.
    reasons : tuple of Violation
        For a stranded one: why each node that is left cannot take it.
    """

    inst: int
    node: int
    left: int = 0
    reasons: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Survival:
    """The outcome of losing one node, with its proof.

    Attributes
    ----------
    node : int
        The node that is lost.
    restarts : tuple of Restart
        Everybody who ran there, in the order of their restart.
    """

    node: int
    restarts: tuple[Restart, ...]

    def __bool__(self) -> bool:
        """Whether everyone found a place."""
        return all(restart.node >= 0 for restart in self.restarts)

    @property
    def stranded(self) -> tuple[int, ...]:
        """Instances that nobody can take."""
        return tuple(r.inst for r in self.restarts if r.node < 0)


def survive(state: State, lost: int, *, thorough: bool = False) -> Survival:
    """Lose a node, and say where everybody restarts.

    Parameters
    ----------
    thorough
        Go on after the first one who is stranded, with all reasons.
    """
    return _walked(state, lost, thorough=thorough).told()


def lose(state: State, lost: int) -> tuple[Survival, State]:
    """Lose a node, and return where everybody restarts, and the cluster then.

    The lost node is still in it, with those whom nobody takes.
    """
    walk = _walked(state, lost, thorough=True)
    return walk.told(), walk.state


def _walked(state: State, lost: int, *, thorough: bool) -> "_Walk":
    walk = _Walk(state, lost)
    for inst in in_order(state, lost):
        restart = walk.restart(inst)
        if restart.node < 0 and not thorough:
            break
    return walk


class _Walk:
    """One loss, carried through step by step."""

    def __init__(self, state: State, lost: int) -> None:
        self.state = state
        self.lost = lost
        self.restarts: list[Restart] = []
        group = state.nodes[lost].group
        self.mates = [at for at in state.view if state.nodes[at].group == group]
        self.refuges = [
            at for at in self.mates if at != lost and not state.nodes[at].offline
        ]

    def told(self) -> Survival:
        """Return what has come of it."""
        return Survival(self.lost, tuple(self.restarts))

    def restart(self, inst: Inst) -> Restart:
        """Restart one instance, and remember where."""
        if inst.mirror is Mirror.INTERNAL:
            done = self._failover(inst)
        elif is_shared(inst):
            done = self._elsewhere(inst)
        else:
            done = self._anew(inst)
        self.restarts.append(done)
        return done

    def _failover(self, inst: Inst) -> Restart:
        barred = self._no_second(inst)
        if barred is not None:
            return Restart(inst.idx, -1, reasons=(barred,))
        state = self.state
        moved = apply(state.nodes, inst, FAILOVER, force=True, names=state)
        if isinstance(moved, Violation):
            return Restart(inst.idx, -1, reasons=(moved,))
        return self._restarted(inst, inst.s, state.after(moved))

    def _no_second(self, inst: Inst) -> Violation | None:
        """Return why there is nobody to fail over to."""
        if inst.s == NOWHERE:
            return Violation(-1, Fail.N1, "no second node", {})
        node = self.state.nodes[inst.s]
        if node.group != self.state.nodes[self.lost].group:
            return Violation(inst.s, Fail.N1, "in another group", {})
        return None if inst.s in self.refuges else is_away(inst.s, Fail.N1)

    def _restarted(self, inst: Inst, at: int, after: State) -> Restart:
        self.state = after
        return Restart(inst.idx, at, after.nodes[at].unallocated)

    def _stranded(self, inst: Inst, refusals: Mapping[int, Violation]) -> Restart:
        """Return that nobody takes an instance; who is offline was not asked."""
        others = [at for at in self.mates if at != self.lost]
        reasons = [refusals.get(at) or is_away(at, Fail.N1) for at in others]
        return Restart(inst.idx, -1, reasons=tuple(reasons))

    def _elsewhere(self, inst: Inst) -> Restart:
        best: Moved | None = None
        least = 0.0
        state = self.state
        refusals: dict[int, Violation] = {}
        for at in self.refuges:
            moved = apply(state.nodes, inst, Move(FA, at), force=True, names=state)
            if isinstance(moved, Violation):
                refusals[at] = moved
                continue
            after = self._group_score(moved)
            if best is None or not least < after:
                best, least = moved, after
        if best is None:
            return self._stranded(inst, refusals)
        return self._restarted(inst, best.inst.p, state.after(best))

    def _group_score(self, moved: Moved) -> float:
        nodes = moved.on(self.state.nodes)
        return score([nodes[at] for at in self.mates])

    def _anew(self, inst: Inst) -> Restart:
        made = {at: place_one(self.state, inst, at, force=True) for at in self.refuges}
        good = [(at, one) for at, one in made.items() if isinstance(one, Placement)]
        if not good:
            refusals = {at: o for at, o in made.items() if isinstance(o, Violation)}
            return self._stranded(inst, refusals)
        at, best = min(reversed(good), key=lambda pair: pair[1].score)
        return self._restarted(inst, at, self.state.with_nodes(best.moved.nodes))


def is_redundant(state: State, *, online_only: bool = False) -> bool:
    """Say whether any one node in view can be lost.

    Parameters
    ----------
    online_only
        Pass over nodes that are lost already.
    """
    return Guard(online_only=online_only)(state)


def unlosable(state: State) -> list[int]:
    """Return the nodes in view whose loss would strand somebody."""
    return Guard().unlosable(state)


class Guard:
    """`is_redundant` as a predicate, quick on states that differ little.

    Parameters
    ----------
    online_only
        As there.
    skip_groups
        Groups that do not matter.
    start
        The state that a change begins with: what it cannot lose, need not be losable
        afterwards. None where every node matters.

    Attributes
    ----------
    excused : set of int
        Nodes that were found to be so, as far as it was asked.
    """

    def __init__(
        self,
        *,
        online_only: bool = False,
        skip_groups: Iterable[int] = (),
        start: State | None = None,
    ) -> None:
        self.online_only = online_only
        self.skipped = set(skip_groups)
        self.start = start
        self.before = Guard() if start is not None else None
        self.excused: set[int] = set()
        self.losses: dict[int, Losses] = {}
        self.suspects: dict[int, int] = {}
        self.base: tuple[State, int | None] | None = None

    @classmethod
    def of_change(cls, state: State) -> Self:
        """Return what guards a change of a state.

        Where a master tells storage units, what cannot be lost already stops nobody. On
        Ganeti's it stops everybody: there the answers are those of Ganeti's planner.
        """
        return cls(start=state if state.tells_units else None)

    def __call__(self, state: State) -> bool:
        """Say whether any one node in view can be lost that matters."""
        self.base = None
        return self._broken(state) is None

    def foresee(self, state: State, inst: Inst, nodes: tuple[int, ...]) -> bool | None:
        """Say the same of a state with one more instance; None if it takes trying."""
        if len(nodes) != 2 or inst.idx < len(state.insts):
            return None
        if self.base is None or self.base[0] is not state:
            self.base = state, self._broken(state)
        group, broken = state.nodes[nodes[0]].group, self.base[1]
        losses = self.losses.get(group)
        if any(state.nodes[at].group == group for at in self.excused):
            return None
        if losses is None or (broken is not None and broken != group):
            return None if broken is None else False
        if broken is None:
            return losses.bears(inst, nodes[0], nodes[1])
        return False if losses.is_mirrored else None

    def _broken(self, state: State) -> int | None:
        """Return the first group that cannot lose a node, if there is one."""
        for group, view in _parts(state):
            if group in self.skipped:
                continue
            passed = self.online_only
            asked = [one.idx for one in view.seen if not (passed and one.offline)]
            if self._is_broken(view, asked):
                return group
        return None

    def _is_broken(self, view: State, asked: Iterable[int]) -> bool:
        """Say whether one of some nodes cannot be lost that could be at the start."""
        left = set(asked) - self.excused
        while (at := self.first_unlosable(view, left)) is not None:
            if self.start is None or self.before is None:
                return True
            if self.before.first_unlosable(self.start, [at]) is None:
                return True
            self.excused.add(at)
            left.remove(at)
        return False

    def unlosable(self, state: State) -> list[int]:
        """Return the nodes in view whose loss would strand somebody."""
        return sorted(set(state.view).difference(self.losable(state, state.view)))

    def losable(self, state: State, nodes: Collection[int]) -> frozenset[int]:
        """Return those of some nodes in view that can be lost."""
        asked = frozenset(nodes)
        return frozenset(
            at
            for group, view in _parts(state)
            for at in asked.intersection(view.view)
            if _survives(self._losses(group, view), at)
        )

    def first_unlosable(self, state: State, nodes: Collection[int]) -> int | None:
        """Return one of some nodes that cannot be lost; ask first who failed last."""
        asked = frozenset(nodes)
        for group, view in _parts(state):
            losses, suspect = self._losses(group, view), self.suspects.get(group)
            order = sorted(asked.intersection(view.view), key=lambda at: at != suspect)
            for at in order:
                if not _survives(losses, at):
                    self.suspects[group] = at
                    return at
        return None

    def _losses(self, group: int, view: State) -> Losses:
        losses = self.losses.get(group)
        if losses is None or not losses.follow(view):
            losses = self.losses[group] = Losses(view)
        return losses


def _survives(losses: Losses, lost: int) -> bool:
    known = losses.survives(lost)
    return bool(survive(losses.state, lost)) if known is None else known


def _parts(state: State) -> list[tuple[int, State]]:
    """Return each group with a state that has its nodes in view."""
    views: dict[int, list[int]] = {}
    for at in state.view:
        views.setdefault(state.nodes[at].group, []).append(at)
    if len(views) == 1:
        return [(group, state) for group in views]
    return [(group, state._replace(view=tuple(views[group]))) for group in views]
