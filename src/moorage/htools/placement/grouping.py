# SPDX-License-Identifier: BSD-2-Clause
"""Which node group a new instance goes to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moorage.errors import NotFound
from moorage.htools.constants import ALLOC_POLICIES, Mirror
from moorage.htools.fleet import Group
from moorage.htools.inst import Inst
from moorage.htools.placement.allocate import (
    Allocation,
    Asking,
    Predicate,
    described,
    targets,
    try_allocate,
)
from moorage.htools.placement.exclusive_storage import try_dedicated
from moorage.htools.state import State
from moorage.htools.survival.n1 import Guard


@dataclass(frozen=True, slots=True)
class Chosen:
    """The group that was chosen, and what was found in each."""

    group: int
    allocation: Allocation
    log: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nowhere:
    """No group takes the instance: why, and everything that was tried."""

    why: str
    tried: tuple[Allocation, ...] = ()

    def as_allocation(self) -> Allocation:
        """Return one allocation without a place, with every refusal."""
        whole = Allocation(log=[self.why], hopeless=True)
        for one in self.tried:
            whole.successes += one.successes
            whole.refused += one.refused
            whole.batches += one.batches
        return whole


def safety(asking: Asking, state: State) -> Predicate | None:
    """Return the predicate that an allocation must leave true: what can be lost, can.

    One node alone has nowhere to fail over to, with or without a newcomer; Ganeti's
    hail, whose masters tell no storage units, places nothing on it.
    """
    passed = state.tells_units and state.is_alone
    return Guard.of_change(state) if asking.capacity and not passed else None


def lacks_network(group: Group, inst: Inst) -> bool:
    """Say whether a network that the instance needs ends outside the group."""
    return any(network not in group.networks for network in inst.networks)


def allocate_in_group(
    state: State, inst: Inst, nodes: int, name: str, asking: Asking
) -> Allocation | Nowhere:
    """Return the best place in one group."""
    at = next((i for i, g in enumerate(state.groups) if name in (g.name, g.uuid)), None)
    if at is None:
        raise NotFound(f"Couldn't find group '{name}'")
    group = state.groups[at]
    if lacks_network(group, inst):
        return Nowhere(
            f"The group {group.name} is not connected to a network required by "
            f"instance {inst.name}"
        )
    found = _try(state.group_view(at), inst, nodes, asking)
    if isinstance(found, str):
        return Nowhere(found)
    found.log = _about(group, found)
    return found


def allocate_anywhere(
    state: State, inst: Inst, nodes: int, asking: Asking
) -> Allocation | Nowhere:
    """Return the best place in any group."""
    found = best_group(state, inst, asking, None, nodes)
    if isinstance(found, Nowhere):
        return found
    name = state.groups[found.group].name
    found.allocation.log = [f"Selected group: {name}", *found.log]
    return found.allocation


def best_group(
    state: State,
    inst: Inst,
    asking: Asking,
    allowed: Iterable[int] | None,
    nodes: int | None = None,
) -> Chosen | Nowhere:
    """Return the group with the best place.

    Parameters
    ----------
    allowed
        Groups to choose from; None for all.
    nodes
        How many nodes the instance needs; None to go by its template.
    """
    count = nodes or (2 if inst.mirror is Mirror.INTERNAL else 1)
    chosen = None if allowed is None else set(allowed)
    log, tries = [], []
    groups = sorted({state.nodes[at].group for at in state.view})
    offered = [at for at in groups if chosen is None or at in chosen]
    for at in offered:
        if lacks_network(state.groups[at], inst):
            log.append(
                f"group {state.groups[at].name} is not connected to a network "
                f"required by instance {inst.name}"
            )
            continue
        tries.append((at, _try(state, inst, count, asking, at)))
    for at, found in tries:
        log += _about(state.groups[at], found)
    good = [
        (_rank(state, at, found), at, found)
        for at, found in tries
        if not isinstance(found, str) and _is_usable(state, at, found)
    ]
    if not good:
        tried = tuple(one for _, one in tries if not isinstance(one, str))
        return Nowhere(_why_not(offered, chosen, groups, state, log), tried)
    _, at, best = min(reversed(good), key=lambda one: one[0])
    return Chosen(at, best, tuple(log))


def _why_not(
    offered: list[int],
    chosen: set[int] | None,
    groups: list[int],
    state: State,
    log: list[str],
) -> str:
    if offered:
        return ", ".join(log)
    allowed = sorted(chosen or ())
    names = ", ".join(state.groups[at].name for at in groups)
    return (
        f"no groups for evacuation: allowed groups was Just {allowed}, "
        f"all groups: {names}"
    )


def _try(
    state: State, inst: Inst, count: int, asking: Asking, group: int | None = None
) -> Allocation | str:
    if count not in (1, 2):
        return "Unsupported number of nodes, only one or two  supported"
    places = targets(state, count, asking, None if group is None else [group])
    if not places:
        return "No online nodes" if count == 1 else "Not enough online nodes"
    if asking.dedicated:
        return try_dedicated(state, inst, places, asking)
    found = try_allocate(state, inst, places, asking, safety(asking, state))
    return described(state, found)


def _is_usable(state: State, at: int, found: Allocation) -> bool:
    return found.best is not None and state.groups[at].alloc_policy != "unallocable"


def _rank(state: State, at: int, found: Allocation) -> tuple[int, Any]:
    policy = ALLOC_POLICIES.index(state.groups[at].alloc_policy)
    if found.loss is not None:
        return policy, found.loss
    return policy, found.best.score if found.best else 0.0


def _about(group: Group, found: Allocation | str) -> list[str]:
    if isinstance(found, str):
        return [f"Group {group.name}: error {found}"]
    return [f"Group {group.name} ({group.alloc_policy}): {text}" for text in found.log]
