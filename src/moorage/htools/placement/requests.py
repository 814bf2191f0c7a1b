# SPDX-License-Identifier: BSD-2-Clause
"""What an allocator is asked, and what it answers."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moorage.disk_templates import FACTS
from moorage.errors import NotFound
from moorage.htools import inst as insts_of
from moorage.htools.assignment import drop_primary
from moorage.htools.constants import Mirror
from moorage.htools.fleet import InstanceRow
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.loader import read_tags
from moorage.htools.moves import FA, F, Moved, R
from moorage.htools.placement.allocate import (
    Allocation,
    Asking,
    as_drbd,
    described,
    try_allocate,
)
from moorage.htools.placement.exclusive_storage import is_dedicated
from moorage.htools.placement.grouping import (
    Nowhere,
    allocate_anywhere,
    allocate_in_group,
    safety,
)
from moorage.htools.state import State
from moorage.htools.units import units_by_type, wishes

if TYPE_CHECKING:  # who places an instance has no use for it
    from moorage.htools.placement.evacuation import Evacuation


@dataclass(frozen=True, slots=True)
class Allocate:
    """Place a new instance.

    Attributes
    ----------
    nodes : int
        How many nodes it needs.
    group : str or None
        The only group to consider, by name.
    restrict : tuple of str or None
        The only nodes to consider, by name.
    """

    inst: InstanceRow
    nodes: int
    group: str | None = None
    restrict: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MultiAllocate:
    """Place several new instances, one after the other."""

    requests: tuple[Allocate, ...]


@dataclass(frozen=True, slots=True)
class Relocate:
    """Replace one node of an instance."""

    inst: int
    nodes: int
    leave: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeEvacuate:
    """Move instances off their nodes."""

    insts: tuple[int, ...]
    mode: str


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Move instances to other groups."""

    insts: tuple[int, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllocateSecondary:
    """Find a second node for an instance that is to be mirrored."""

    inst: int


Request = (
    Allocate | MultiAllocate | Relocate | NodeEvacuate | ChangeGroup | AllocateSecondary
)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer.

    Attributes
    ----------
    success : bool
        Whether the request could be met.
    info : str
        A sentence about it.
    result : JSON value
        Node names, or moves with their opcodes.
    state : State
        The cluster as it would be afterwards.
    allocations : tuple of Allocation
        For new instances: what was tried, with every refusal.
    explanation : JSON value or None
        The refusals by name, when asked for.
    """

    success: bool
    info: str
    result: Any
    state: State
    allocations: tuple[Allocation, ...] = ()
    explanation: Any = None


class _Unmet(Exception):
    """The request cannot be met; the text says why."""


@dataclass(slots=True)
class _Outcome:
    info: str
    result: Any
    state: State
    allocations: list[Allocation] = field(default_factory=list)


def answer(state: State, request: Request, asking: Asking) -> Response:
    """Return the answer to a request; it never raises for want of room."""
    tried: list[Allocation] = []
    asking = replace(asking, dedicated=_is_dedicated(state, request))
    try:
        done = _answer(state, request, asking, tried)
    except (_Unmet, NotFound) as error:
        info = f"Request failed: {error}"
        return Response(False, info, [], state, tuple(tried))
    info = f"Request successful: {done.info}"
    return Response(True, info, done.result, done.state, tuple(tried))


def _is_dedicated(state: State, request: Request) -> bool:
    """Say whether a new instance goes to nodes with exclusive storage.

    That is Ganeti's way, which looks at no loss. A master that tells storage units
    chooses there as anywhere else.
    """
    if state.tells_units:
        return False
    if isinstance(request, Allocate):
        return is_dedicated(state, request.group)
    if isinstance(request, MultiAllocate):
        groups = {one.group for one in request.requests}
        return is_dedicated(state, groups.pop() if len(groups) == 1 else None)
    return False


def _answer(
    state: State, request: Request, asking: Asking, tried: list[Allocation]
) -> _Outcome:
    match request:
        case Allocate():
            return _allocate(state, request, asking, tried)
        case MultiAllocate():
            return _multi(state, request, asking, tried)
        case Relocate():
            return _relocate(state, request, asking)
        case NodeEvacuate() | ChangeGroup():
            return _moved(state, _evacuated(state, request, asking))
        case AllocateSecondary():
            return _second(state, request, asking, tried)


def _evacuated(
    state: State, request: NodeEvacuate | ChangeGroup, asking: Asking
) -> "Evacuation":
    from moorage.htools.placement import evacuation  # noqa: PLC0415 - start-up time

    if isinstance(request, NodeEvacuate):
        insts, mode = request.insts, request.mode
        return evacuation.evacuate(state, insts, mode, force=asking.force)
    return evacuation.change_group(state, request.insts, request.groups, asking)


def newcomer(state: State, row: InstanceRow) -> Inst:
    """Return a new instance, as the next one of a state."""
    if state.tells_units and not FACTS[row.template].node_disk:
        row = row._replace(disks=tuple(one._replace(spindles=0) for one in row.disks))
    inst = insts_of.from_row(len(state.insts), row)
    read_tags(state.fleet.tags, inst)
    nodes = state.fleet.nodes
    if any(node.units is not None for node in nodes):
        try:
            inst.wants = wishes(row, nodes, units_by_type(nodes))
        except ValueError as error:
            raise _Unmet(str(error)) from error
    return inst


def find_place(state: State, request: Allocate, asking: Asking) -> Allocation:
    """Return where a new instance goes.

    Raises
    ------
    NotFound
        If the group does not exist.
    """
    inst = newcomer(state, request.inst)
    if request.restrict is not None and asking.restrict is None:
        asking = replace(asking, restrict=frozenset(request.restrict))
    if request.group is None:
        found = allocate_anywhere(state, inst, request.nodes, asking)
    else:
        found = allocate_in_group(state, inst, request.nodes, request.group, asking)
    return found.as_allocation() if isinstance(found, Nowhere) else found


def _allocate(
    state: State, request: Allocate, asking: Asking, tried: list[Allocation]
) -> _Outcome:
    found = find_place(state, request, asking)
    tried.append(found)
    info = ", ".join(found.log)
    if found.best is None:
        raise _Unmet(info)
    names = [state.nodes[at].name for at in found.best.nodes]
    return _Outcome(info, names, state.with_new(found.best.moved))


def _multi(
    state: State, request: MultiAllocate, asking: Asking, tried: list[Allocation]
) -> _Outcome:
    placed, failed = [], []
    for one in request.requests:
        found = find_place(state, one, asking)
        tried.append(found)
        if found.best is None:
            if found.hopeless:
                raise _Unmet(", ".join(found.log))
            failed.append([one.inst.name, ", ".join(found.log)])
            continue
        names = [state.nodes[at].name for at in found.best.nodes]
        placed.append([one.inst.name, names])
        state = state.with_new(found.best.moved)
    info = (
        f"{len(failed)} instances failed to allocate and {len(placed)} were "
        "allocated successfully"
    )
    return _Outcome(info, [placed, failed], state)


def _relocate(state: State, request: Relocate, asking: Asking) -> _Outcome:
    from moorage.htools.placement import evacuation  # noqa: PLC0415 - start-up time

    inst = state.insts[request.inst]
    if request.nodes != 1:
        raise _Unmet(f"Exchange {request.nodes} nodes mode is not implemented")
    if inst.mirror is Mirror.NONE:
        raise _Unmet("Can't relocate non-mirrored instances")
    mirrored = inst.mirror is Mirror.INTERNAL
    leaves, what = (inst.s, "secondary") if mirrored else (inst.p, "primary")
    if request.leave != (leaves,):
        raise _Unmet(
            "Unsupported request: excluded nodes not equal to instance's "
            f"{what}({leaves} versus [{','.join(map(str, request.leave))}])"
        )
    mode = evacuation.SECONDARY if mirrored else evacuation.PRIMARY
    done = evacuation.evacuate(state, [inst.idx], mode, force=asking.force)
    if done.stuck:
        raise _Unmet(done.stuck[0][1])
    new = done.away[0].inst
    return _Outcome(
        "success",
        [state.nodes[new.s if mirrored else new.p].name],
        done.state,
    )


def _moved(state: State, done: "Evacuation") -> _Outcome:
    nodes, groups = state.nodes, state.groups
    moved = [
        [
            away.inst.name,
            groups[nodes[away.inst.p].group].name,
            [nodes[at].name for at in away.inst.nodes],
        ]
        for away in done.away
    ]
    stuck = [[state.insts[at].name, why] for at, why in done.stuck]
    jobs = [
        [_opcode(state, away.inst, move.verb, move.target) for move in away.moves]
        for away in done.away
    ]
    info = (
        f"{len(stuck)} instances failed to move and {len(moved)} were moved "
        "successfully"
    )
    return _Outcome(info, [moved, stuck, jobs], done.state)


def _opcode(state: State, inst: Inst, verb: str, target: int) -> dict[str, Any]:
    from moorage.htools.plans import plan  # noqa: PLC0415 - start-up time

    name = state.nodes[target].name if target != NOWHERE else None
    if verb == R:
        return plan.replace_opcode(inst, name)
    assert verb in (F, FA)  # noqa: S101 - evacuation knows no other verb
    return plan.migrate_opcode(inst, name)


def _second(
    state: State, request: AllocateSecondary, asking: Asking, tried: list[Allocation]
) -> _Outcome:
    old = state.insts[request.inst]
    if old.s >= 0:
        raise _Unmet("Instance already has a secondary")
    without, inst = unplaced(state, old)
    group = state.nodes[old.p].group
    mates = [
        at
        for at in state.view
        if at != old.p
        and state.nodes[at].group == group
        and not state.nodes[at].offline
    ]
    places = [(old.p, mates)] if mates else []
    found = try_allocate(without, inst, places, asking, safety(asking, state))
    tried.append(described(state, found))
    if found.best is None:
        raise _Unmet(", ".join(found.log))
    best: Moved = found.best.moved
    return _Outcome(", ".join(found.log), best.nodes[1].name, without.after(best))


def unplaced(state: State, old: Inst) -> tuple[State, Inst]:
    """Return a local instance as one with a second copy, and the state without it."""
    insts = list(state.insts)
    insts[old.idx] = as_drbd(old)
    node = drop_primary(state.nodes[old.p], old)
    return state.with_nodes([node])._replace(insts=insts), insts[old.idx]
