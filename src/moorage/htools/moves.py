# SPDX-License-Identifier: BSD-2-Clause
"""Moves: what can be done to an instance in one step.

=====  ==================================  ==========================
verb   what happens                        new primary : secondary
=====  ==================================  ==========================
f      fail over to the secondary          s : p
fa     fail over to any node               t
r      replace the secondary               p : t
rf     replace the secondary, fail over    t : p
frf    fail over, replace, fail over       t : s
fr     fail over, replace                  s : t
=====  ==================================  ==========================
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from moorage.htools.assignment import (
    add_primary,
    add_secondary,
    drop_primary,
    drop_secondary,
)
from moorage.htools.constraints.admission import migration, reach
from moorage.htools.constraints.violation import Names, Violation, violation_in
from moorage.htools.inst import Inst
from moorage.htools.node import Node

F, FA, R, RF, FRF, FR = "f", "fa", "r", "rf", "frf", "fr"

Nodes = Sequence[Node]
"""Nodes of a plan, by index."""


class Move(NamedTuple):
    """One step of one instance.

    Attributes
    ----------
    verb : str
        One of the table above.
    target : int
        Index of the new node; -1 for a plain failover.
    """

    verb: str
    target: int = -1


FAILOVER: Final = Move(F)


class Moved(NamedTuple):
    """What a move changes: these nodes, and the instance."""

    nodes: tuple[Node, ...]
    inst: Inst

    def on(self, nodes: Nodes) -> list[Node]:
        """Return the nodes of a plan after the move."""
        after = list(nodes)
        for node in self.nodes:
            after[node.idx] = node
        return after


def shared_domains(one: Node, other: Node) -> int:
    """Return how many failure domains two nodes have in common."""
    return len(one.location_tags & other.location_tags)


def apply(
    nodes: Nodes,
    inst: Inst,
    move: Move,
    *,
    force: bool = False,
    names: Names | None = None,
) -> Moved | Violation:
    """Return what `move` changes, or why it cannot be done.

    Parameters
    ----------
    force
        Skip the checks that protect comfort only.
    names
        For the violation, to name others.
    """
    return _VERBS[move.verb](nodes, inst, move.target, force, names)


def why_move(
    state: Names, inst: Inst, move: Move, *, force: bool = False
) -> Violation | None:
    """Return why a move cannot be made; None when it can."""
    return violation_in(apply(state.nodes, inst, move, force=force, names=state))


def _failover(
    nodes: Nodes, inst: Inst, _target: int, force: bool, names: Names | None
) -> Moved | Violation:
    p, s = nodes[inst.p], nodes[inst.s]
    force = p.offline or force
    barred = migration(p, s)
    if barred is not None:
        return barred
    new_p = add_primary(drop_secondary(s, inst), inst, force=force, names=names)
    if isinstance(new_p, Violation):
        return new_p
    free = drop_primary(p, inst)
    new_s = add_secondary(
        free, inst, inst.s, force=force, copied=p.offline, names=names
    )
    if isinstance(new_s, Violation):
        return new_s
    return Moved((new_s, new_p), inst.moved(inst.s, inst.p))


def _failover_any(
    nodes: Nodes, inst: Inst, target: int, force: bool, names: Names | None
) -> Moved | Violation:
    p, t = nodes[inst.p], nodes[target]
    barred = migration(p, t) or reach(t, inst, names)
    if barred is not None:
        return barred
    new_p = add_primary(t, inst, force=p.offline or force, names=names)
    if isinstance(new_p, Violation):
        return new_p
    return Moved((drop_primary(p, inst), new_p), inst.moved(target, inst.s))


def _replace_secondary(
    nodes: Nodes, inst: Inst, target: int, force: bool, names: Names | None
) -> Moved | Violation:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    new = inst.moved(inst.p, target, shared_domains(p, t))
    new_t = add_secondary(t, new, inst.p, force=s.offline or force, names=names)
    if isinstance(new_t, Violation):
        return new_t
    # Its location score changes, so the primary takes it off and on again.
    new_p = add_primary(drop_primary(p, inst), new, force=True, names=names)
    if isinstance(new_p, Violation):
        return new_p
    return Moved((new_p, new_t, drop_secondary(s, inst)), new)


def _replace_failover(
    nodes: Nodes, inst: Inst, target: int, force: bool, names: Names | None
) -> Moved | Violation:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    barred = migration(p, t)
    if barred is not None:
        return barred
    new = inst.moved(target, inst.p, shared_domains(p, t))
    new_t = add_primary(t, new, force=force, names=names)
    if isinstance(new_t, Violation):
        return new_t
    free = drop_primary(p, inst)
    new_p = add_secondary(free, new, target, force=s.offline or force, names=names)
    if isinstance(new_p, Violation):
        return new_p
    return Moved((new_t, new_p, drop_secondary(s, inst)), new)


def _replace_primary(
    nodes: Nodes, inst: Inst, target: int, force: bool, names: Names | None
) -> Moved | Violation:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    force = p.offline or force
    barred = migration(p, s) or migration(s, t)
    if barred is not None:
        return barred
    new = inst.moved(target, inst.s, shared_domains(t, s))
    # The secondary must be able to run it for the time of the move.
    stay = add_primary(drop_secondary(s, inst), new, force=force, names=names)
    if isinstance(stay, Violation):
        return stay
    new_t = add_primary(t, new, force=force, names=names)
    if isinstance(new_t, Violation):
        return new_t
    free = drop_primary(stay, new)
    new_s = add_secondary(free, new, target, force=force, names=names)
    if isinstance(new_s, Violation):
        return new_s
    return Moved((new_t, drop_primary(p, inst), new_s), new)


def _failover_replace(
    nodes: Nodes, inst: Inst, target: int, force: bool, names: Names | None
) -> Moved | Violation:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    force = p.offline or force
    barred = migration(p, s)
    if barred is not None:
        return barred
    new = inst.moved(inst.s, target, shared_domains(s, t))
    new_s = add_primary(drop_secondary(s, inst), new, force=force, names=names)
    if isinstance(new_s, Violation):
        return new_s
    new_t = add_secondary(t, new, inst.s, force=force, names=names)
    if isinstance(new_t, Violation):
        return new_t
    return Moved((new_t, new_s, drop_primary(p, inst)), new)


_VERBS: Final = {
    F: _failover,
    FA: _failover_any,
    R: _replace_secondary,
    RF: _replace_failover,
    FRF: _replace_primary,
    FR: _failover_replace,
}
