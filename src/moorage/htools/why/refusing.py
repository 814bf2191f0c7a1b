# SPDX-License-Identifier: BSD-2-Clause
"""Why a move, or a place for a new instance, is refused: the check that failed.

The twins of `moorage.htools.moves.apply` and `moorage.htools.placement.allocate`, which
say no in one word: here the same checks are asked in the same order, for the
name and the numbers of the first that fails.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.moves import FA, FR, FRF, RF, F, Move, R, shared_domains
from moorage.htools.node import Node
from moorage.htools.placement.spots import full_pool
from moorage.htools.state import State
from moorage.htools.verbs import add_primary, drop_primary, drop_secondary
from moorage.htools.why.constraints import (
    MIB,
    Finding,
    migration_finding,
    primary_finding,
    reach_finding,
    secondary_finding,
)
from moorage.htools.why.limits import policy_finding
from moorage.htools.words import Fail

Findings = Iterator[Finding | None]


def why_place(
    state: State,
    inst: Inst,
    nodes: Sequence[int],
    *,
    force: bool = False,
) -> Finding | None:
    """Return why a new instance cannot go to one node, or to a pair.

    Parameters
    ----------
    nodes
        The node, or primary and secondary.
    """
    checks = _single if len(nodes) == 1 else _pair
    return _first(checks(state, inst, nodes, force))


def _first(checks: Findings) -> Finding | None:
    return next((found for found in checks if found is not None), None)


def _single(state: State, inst: Inst, nodes: Sequence[int], force: bool) -> Findings:
    node = state.nodes[nodes[0]]
    yield policy_finding(node, inst)
    yield reach_finding(state, inst, node)
    yield shared_finding(state, inst, node)
    yield primary_finding(state, node, inst, force=force)


def _pair(state: State, inst: Inst, nodes: Sequence[int], force: bool) -> Findings:
    p, s = state.nodes[nodes[0]], state.nodes[nodes[1]]
    new = inst.moved(p.idx, s.idx, shared_domains(p, s))
    yield policy_finding(p, inst)
    yield primary_finding(state, p, new, force=force)
    yield secondary_finding(state, s, new, p.idx)


def shared_finding(state: State, inst: Inst, node: Node) -> Finding | None:
    """Return which pool has no room for disks that do not exist yet."""
    found = full_pool(state, inst, node)
    if found is None:
        return None
    name, asked, free = found
    facts = {"pool": "/".join(name), "asked": asked, "free": free}
    return Finding(node.idx, Fail.DISK, "pool", facts, MIB, asked - free)


def why_move(
    state: State, inst: Inst, move: Move, *, force: bool = False
) -> Finding | None:
    """Return why a move cannot be made; None when it can."""
    return _first(_CHECKS[move.verb](state, inst, move.target, force))


def _failover(state: State, inst: Inst, _target: int, force: bool) -> Findings:
    p, s = state.nodes[inst.p], state.nodes[inst.s]
    force = p.offline or force
    yield migration_finding(p, s)
    yield primary_finding(state, drop_secondary(s, inst), inst, force=force)
    yield secondary_finding(
        state,
        drop_primary(p, inst),
        inst,
        inst.s,
        force=force,
        ignore_disk=p.offline,
    )


def _failover_any(state: State, inst: Inst, target: int, force: bool) -> Findings:
    p, t = state.nodes[inst.p], state.nodes[target]
    yield migration_finding(p, t)
    yield reach_finding(state, inst, t)
    yield primary_finding(state, t, inst, force=p.offline or force)


def _replace_secondary(state: State, inst: Inst, target: int, force: bool) -> Findings:
    p, s, t = state.nodes[inst.p], state.nodes[inst.s], state.nodes[target]
    new = inst.moved(inst.p, target, shared_domains(p, t))
    yield secondary_finding(state, t, new, inst.p, force=s.offline or force)
    yield primary_finding(state, drop_primary(p, inst), new, force=True)


def _replace_failover(state: State, inst: Inst, target: int, force: bool) -> Findings:
    p, s, t = state.nodes[inst.p], state.nodes[inst.s], state.nodes[target]
    new = inst.moved(target, inst.p, shared_domains(p, t))
    yield migration_finding(p, t)
    yield primary_finding(state, t, new, force=force)
    freed = drop_primary(p, inst)
    yield secondary_finding(state, freed, new, target, force=s.offline or force)


def _replace_primary(state: State, inst: Inst, target: int, force: bool) -> Findings:
    p, s, t = state.nodes[inst.p], state.nodes[inst.s], state.nodes[target]
    force = p.offline or force
    new = inst.moved(target, inst.s, shared_domains(t, s))
    yield migration_finding(p, s)
    yield migration_finding(s, t)
    alone = drop_secondary(s, inst)
    yield primary_finding(state, alone, new, force=force)
    yield primary_finding(state, t, new, force=force)
    stay = add_primary(alone, new, force=force)
    if not isinstance(stay, Fail):
        back = drop_primary(stay, new)
        yield secondary_finding(state, back, new, target, force=force)


def _failover_replace(state: State, inst: Inst, target: int, force: bool) -> Findings:
    p, s, t = state.nodes[inst.p], state.nodes[inst.s], state.nodes[target]
    force = p.offline or force
    new = inst.moved(inst.s, target, shared_domains(s, t))
    yield migration_finding(p, s)
    yield primary_finding(state, drop_secondary(s, inst), new, force=force)
    yield secondary_finding(state, t, new, inst.s, force=force)


_CHECKS: Final[dict[str, Callable[[State, Inst, int, bool], Findings]]] = {
    F: _failover,
    FA: _failover_any,
    R: _replace_secondary,
    RF: _replace_failover,
    FRF: _replace_primary,
    FR: _failover_replace,
}


def why_not_second(state: State, inst: Inst) -> Finding | None:
    """Return why nobody can fail over: no second node, or it is not online."""
    if inst.s == NOWHERE:
        return Finding(-1, Fail.N1, "no second node")
    node = state.nodes[inst.s]
    if node.group != state.nodes[inst.p].group:
        return Finding(inst.s, Fail.N1, "in another group")
    if node.offline or inst.s not in state.view:
        return Finding(inst.s, Fail.N1, "offline or drained")
    return None
