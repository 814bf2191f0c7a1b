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

from dataclasses import dataclass
from typing import Final

from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.verbs import (
    add_primary,
    add_secondary,
    drop_primary,
    drop_secondary,
    migrates,
)
from moorage.htools.words import Fail

F, FA, R, RF, FRF, FR = "f", "fa", "r", "rf", "frf", "fr"

Nodes = list[Node]
"""Nodes of a plan, by index."""


@dataclass(frozen=True, slots=True)
class Move:
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


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move changes: these nodes, and the instance."""

    nodes: tuple[Node, ...]
    inst: Inst

    def on(self, nodes: Nodes) -> Nodes:
        """Return the nodes of a plan after the move."""
        after = list(nodes)
        for node in self.nodes:
            after[node.idx] = node
        return after


def shared_domains(one: Node, other: Node) -> int:
    """Return how many failure domains two nodes have in common."""
    return len(one.location_tags & other.location_tags)


def apply(nodes: Nodes, inst: Inst, move: Move, *, force: bool = False) -> Moved | Fail:
    """Return what `move` changes, or why it cannot be done.

    Parameters
    ----------
    force
        Skip the checks that protect comfort only.
    """
    return _VERBS[move.verb](nodes, inst, move.target, force)


def _failover(nodes: Nodes, inst: Inst, _target: int, force: bool) -> Moved | Fail:
    p, s = nodes[inst.p], nodes[inst.s]
    if not migrates(p, s):
        return Fail.MIGRATION
    new_p = add_primary(drop_secondary(s, inst), inst, force=p.offline or force)
    if isinstance(new_p, Fail):
        return new_p
    new_s = add_secondary(
        drop_primary(p, inst),
        inst,
        inst.s,
        force=p.offline or force,
        ignore_disk=p.offline,
    )
    if isinstance(new_s, Fail):
        return new_s
    return Moved((new_s, new_p), inst.moved(inst.s, inst.p))


def _failover_any(nodes: Nodes, inst: Inst, target: int, force: bool) -> Moved | Fail:
    p, t = nodes[inst.p], nodes[target]
    if not migrates(p, t):
        return Fail.MIGRATION
    if inst.reach is not None and target not in inst.reach:
        return Fail.DISK
    new_p = add_primary(t, inst, force=p.offline or force)
    if isinstance(new_p, Fail):
        return new_p
    return Moved((drop_primary(p, inst), new_p), inst.moved(target, inst.s))


def _replace_secondary(
    nodes: Nodes, inst: Inst, target: int, force: bool
) -> Moved | Fail:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    new = inst.moved(inst.p, target, shared_domains(p, t))
    new_t = add_secondary(t, new, inst.p, force=s.offline or force)
    if isinstance(new_t, Fail):
        return new_t
    # Its location score changes, so the primary takes it off and on again.
    new_p = add_primary(drop_primary(p, inst), new, force=True)
    if isinstance(new_p, Fail):
        return new_p
    return Moved((new_p, new_t, drop_secondary(s, inst)), new)


def _replace_failover(
    nodes: Nodes, inst: Inst, target: int, force: bool
) -> Moved | Fail:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    if not migrates(p, t):
        return Fail.MIGRATION
    new = inst.moved(target, inst.p, shared_domains(p, t))
    new_t = add_primary(t, new, force=force)
    if isinstance(new_t, Fail):
        return new_t
    freed = drop_primary(p, inst)
    new_p = add_secondary(freed, new, target, force=s.offline or force)
    if isinstance(new_p, Fail):
        return new_p
    return Moved((new_t, new_p, drop_secondary(s, inst)), new)


def _replace_primary(
    nodes: Nodes, inst: Inst, target: int, force: bool
) -> Moved | Fail:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    force = p.offline or force
    if not migrates(p, s) or not migrates(s, t):
        return Fail.MIGRATION
    new = inst.moved(target, inst.s, shared_domains(t, s))
    # The secondary must be able to run it for the time of the move.
    stay = add_primary(drop_secondary(s, inst), new, force=force)
    if isinstance(stay, Fail):
        return stay
    new_t = add_primary(t, new, force=force)
    if isinstance(new_t, Fail):
        return new_t
    new_s = add_secondary(drop_primary(stay, new), new, target, force=force)
    if isinstance(new_s, Fail):
        return new_s
    return Moved((new_t, drop_primary(p, inst), new_s), new)


def _failover_replace(
    nodes: Nodes, inst: Inst, target: int, force: bool
) -> Moved | Fail:
    p, s, t = nodes[inst.p], nodes[inst.s], nodes[target]
    force = p.offline or force
    if not migrates(p, s):
        return Fail.MIGRATION
    new = inst.moved(inst.s, target, shared_domains(s, t))
    new_s = add_primary(drop_secondary(s, inst), new, force=force)
    if isinstance(new_s, Fail):
        return new_s
    new_t = add_secondary(t, new, inst.s, force=force)
    if isinstance(new_t, Fail):
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
