# SPDX-License-Identifier: BSD-2-Clause
"""Losing a node, or a storage unit, told in full: who restarts where, who cannot.

`moorage.htools.survival.redundancy` simulates a loss; here the outcome is replayed step
by step, so that whoever is stranded has the numbers of the moment in which
nobody took them. Restarting one after the other is what happens in practice,
and can strand somebody though a way exists (`moorage.htools.survival.ways`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from moorage.htools.fleet import UnitName
from moorage.htools.inst import Inst
from moorage.htools.moves import FA, FAILOVER, Move
from moorage.htools.state import State
from moorage.htools.survival.losses import Losses, is_shared
from moorage.htools.survival.redundancy import Guard, Restart, Survival, survive
from moorage.htools.survival.ways import another_way, mates, restarted
from moorage.htools.why.constraints import Finding
from moorage.htools.why.refusing import why_move, why_not_second, why_place
from moorage.htools.words import Fail, Mirror


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of one instance after a loss.

    Attributes
    ----------
    inst, node : int
        Who, and where it runs then; -1 for nowhere.
    left : int
        Memory that its node has left then, MiB.
    findings : tuple of Finding
        For a stranded one: why each node that is left cannot take it.
    """

    inst: int
    node: int
    left: int = 0
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss, and what becomes of everybody concerned.

    Attributes
    ----------
    node : int
        Where; the whole node unless `unit` says which part of it.
    unit : UnitName or None
        The storage unit that is lost; the node itself stays.
    outcomes : tuple of Outcome
        In the order of their restart.
    way : tuple of (int, int) or None
        If somebody is stranded: instances and nodes, all of them placed, found by
        trying otherwise; None when there is no such way, or it was not found.
    searched : bool
        Whether every way was tried: then None means that there is none.
    """

    node: int
    outcomes: tuple[Outcome, ...]
    unit: UnitName | None = None
    way: tuple[tuple[int, int], ...] | None = None
    searched: bool = True

    @property
    def stranded(self) -> tuple[Outcome, ...]:
        """Those who find no place."""
        return tuple(one for one in self.outcomes if one.node < 0)


class Homes(Losses):
    """Where everybody of a group restarts, by the kernel.

    Parameters
    ----------
    state
        The group's nodes are in view.
    """

    def of(self, lost: int) -> Survival | None:
        """Return the proof; None when somebody is stranded, or it is not modelled."""
        if not self.usable:
            return None
        order, grid = self._order(lost), self._loaded()
        if any(inst.idx not in self.places for inst in order):
            return None
        undo = self._undo(grid, order)
        grid.kernel.reset(self.fixed)
        found: list[Restart] = []
        for inst in order:
            place = self._restart(grid, inst, grid.places[lost])
            if place < 0:
                break
            found.append(Restart(inst.idx, self.state.view[place]))
        undo()
        return Survival(lost, tuple(found)) if len(found) == len(order) else None


def lose(state: State, lost: int, homes: Homes | None = None) -> Loss:
    """Lose a node, and say what becomes of everybody on it.

    Parameters
    ----------
    state
        The node's group is in view.
    homes
        Finds places fast; for who asks about several nodes of one state.
    """
    found = None if homes is None else homes.of(lost)
    if found is not None:
        return Loss(lost, _settled(state, found))
    return _told(state, survive(state, lost, thorough=True))


def lose_unit(state: State, lost: int, unit: UnitName) -> Loss:
    """Lose one storage unit of a node; who has no disk there is not concerned."""
    node = state.nodes[lost]
    touched = tuple(
        at
        for at in node.primaries
        if any(name == unit for name, _ in state.insts[at].wants)
    )
    state = state.with_nodes([node.copy(primaries=touched)])
    loss = lose(state, lost)
    return Loss(lost, loss.outcomes, unit, loss.way, loss.searched)


def _settled(state: State, found: Survival) -> tuple[Outcome, ...]:
    """Return what becomes of people who all find a place, with the memory left."""
    left = {at: state.nodes[at].unallocated for at in mates(state, found.node)}
    outcomes = []
    for restart in found.restarts:
        inst = state.insts[restart.inst]
        left[restart.node] -= inst.mem if inst.uses_mem else 0
        outcomes.append(Outcome(inst.idx, restart.node, left[restart.node]))
    return tuple(outcomes)


def _told(state: State, found: Survival) -> Loss:
    outcomes = tuple(_outcomes(state, found))
    if found:
        return Loss(found.node, outcomes)
    way, searched = another_way(state, found.node)
    return Loss(found.node, outcomes, None, way, searched)


def _outcomes(state: State, found: Survival) -> Iterator[Outcome]:
    for restart in found.restarts:
        inst = state.insts[restart.inst]
        if restart.node < 0:
            findings = tuple(why_stranded(state, inst, found.node))
            yield Outcome(inst.idx, -1, 0, findings)
            continue
        state = _restarted(state, inst, restart)
        left = state.nodes[restart.node].unallocated
        yield Outcome(inst.idx, restart.node, left)


def _restarted(state: State, inst: Inst, restart: Restart) -> State:
    after = restarted(state, inst, restart.node)
    if after is None:
        raise RuntimeError(f"two answers for {inst.name} on {restart.node}")
    return after


def why_stranded(state: State, inst: Inst, lost: int) -> Iterator[Finding]:
    """Yield why each other node cannot take an instance over."""
    if inst.mirror is Mirror.INTERNAL:
        found = why_not_second(state, inst) or why_move(
            state, inst, FAILOVER, force=True
        )
        if found is not None:
            yield found
        return
    for at in mates(state, lost):
        if state.nodes[at].offline:
            yield Finding(at, Fail.N1, "offline or drained")
            continue
        found = _why_here(state, inst, at)
        if found is not None:
            yield found


def _why_here(state: State, inst: Inst, at: int) -> Finding | None:
    if is_shared(inst):
        return why_move(state, inst, Move(FA, at), force=True)
    return why_place(state, inst, (at,), force=True)


# -- what an allocation or a move would break ------------------------------------------


class Breach:
    """Why a change of the cluster is refused: the loss that it could not survive.

    Parameters
    ----------
    state
        Before the change.
    guard
        Says which losses matter; all when None.
    """

    def __init__(self, state: State, guard: Guard | None = None) -> None:
        self.guard = guard or Guard()
        self.already = None if self.guard(state) else self._named(state, already=True)

    def finding(self, after: State) -> Finding | None:
        """Return whom the change would strand; None when nobody."""
        if self.already is not None:
            return self.already
        return None if self.guard(after) else self._named(after, already=False)

    def _named(self, state: State, *, already: bool) -> Finding | None:
        for group, at in self.guard.suspects.items():
            loss = survive(state.group_view(group), at, thorough=True)
            if not loss:
                told = _told_loss(state.group_view(group), loss)
                return _breach(state, at, told, already=already)
        return None


def strands(state: State, lost: int) -> Finding:
    """Return whom a change strands, if it leads to a state that cannot lose a node."""
    view = state.group_view(state.nodes[lost].group)
    told = _told_loss(view, survive(view, lost, thorough=True))
    return _breach(state, lost, told, already=False)


def _told_loss(state: State, found: Survival) -> Loss:
    return Loss(found.node, tuple(_outcomes(state, found)))


def _breach(state: State, lost: int, loss: Loss, *, already: bool) -> Finding:
    stranded = loss.stranded
    findings = [found for one in stranded[:1] for found in one.findings]
    findings.sort(key=lambda found: (not found.short, found.short))
    facts = {
        "losing": state.nodes[lost].name,
        "strands": [state.insts[one.inst].name for one in stranded],
        "already": already,
        "because": [_located(state, found) for found in findings],
    }
    return Finding(lost, Fail.N1, "n+1", facts, because=tuple(findings))


def _located(state: State, found: Finding) -> str:
    who = f"{state.nodes[found.node].name}: " if found.node >= 0 else ""
    return who + found.sentence()
