# SPDX-License-Identifier: BSD-2-Clause
"""Losing a node, or a storage unit, told in full: who restarts where, who cannot.

`moorage.htools.survival.n1` simulates a loss; whoever is stranded has the
numbers of the moment in which nobody took them. Restarting one after the other is what
happens in practice, and can strand somebody though a way exists
(`moorage.htools.survival.ways`).
"""

from dataclasses import dataclass

from moorage.htools.constants import Fail
from moorage.htools.constraints.violation import Violation, located, nearest
from moorage.htools.fleet import UnitName
from moorage.htools.state import State
from moorage.htools.survival.kernel_losses import Losses
from moorage.htools.survival.n1 import Guard, Restart, Survival, survive
from moorage.htools.survival.ways import another_way


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss, and what becomes of everybody concerned.

    Attributes
    ----------
    node : int
        Where; the whole node unless `unit` says which part of it.
    unit : UnitName or None
        The storage unit that is lost; the node itself stays.
    outcomes : tuple of Restart
        In the order of their restart.
    way : tuple of (int, int) or None
        If somebody is stranded: instances and nodes, all of them placed, found by
        trying otherwise; None when there is no such way, or it was not found.
    searched : bool
        Whether every way was tried: then None means that there is none.
    """

    node: int
    outcomes: tuple[Restart, ...]
    unit: UnitName | None = None
    way: tuple[tuple[int, int], ...] | None = None
    searched: bool = True

    @property
    def stranded(self) -> tuple[Restart, ...]:
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
        left = {at: self.state.nodes[at].unallocated for at in self.state.view}
        found: list[Restart] = []
        for inst in order:
            place = self._restart(grid, inst, grid.places[lost])
            if place < 0:
                break
            at = self.state.view[place]
            left[at] -= inst.mem if inst.uses_mem else 0
            found.append(Restart(inst.idx, at, left[at]))
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
        return Loss(lost, found.restarts)
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


def _told(state: State, found: Survival) -> Loss:
    if found:
        return Loss(found.node, found.restarts)
    way, searched = another_way(state, found.node)
    return Loss(found.node, found.restarts, None, way, searched)


class Breach:
    """Why a change of the cluster is refused: the loss that it could not survive.

    Parameters
    ----------
    state
        Before the change.
    guard
        Says which losses matter; `Guard.of_change` when None.
    """

    def __init__(self, state: State, guard: Guard | None = None) -> None:
        self.guard = guard or Guard.of_change(state)
        self.already = None if self.guard(state) else self._named(state, already=True)

    def finding(self, after: State) -> Violation | None:
        """Return whom the change would strand; None when nobody."""
        if self.already is not None:
            return self.already
        return None if self.guard(after) else self._named(after, already=False)

    def _named(self, state: State, *, already: bool) -> Violation | None:
        for group, at in self.guard.suspects.items():
            if at in self.guard.excused:
                continue
            loss = survive(state.group_view(group), at, thorough=True)
            if not loss:
                return _breach(state, loss, already=already)
        return None


def strands(state: State, lost: int) -> Violation:
    """Return whom a change strands, if it leads to a state that cannot lose a node."""
    view = state.group_view(state.nodes[lost].group)
    return _breach(state, survive(view, lost, thorough=True), already=False)


def _breach(state: State, loss: Survival, *, already: bool) -> Violation:
    stranded = [one for one in loss.restarts if one.node < 0]
    findings = nearest(found for one in stranded[:1] for found in one.reasons)
    facts = {
        "losing": state.nodes[loss.node].name,
        "strands": [state.insts[one.inst].name for one in stranded],
        "already": already,
        "because": [located(state, found) for found in findings],
    }
    return Violation(loss.node, Fail.N1, "n+1", facts, because=tuple(findings))
