# SPDX-License-Identifier: BSD-2-Clause
"""Why groups and nodes were not even tried for a new instance."""

from collections.abc import Iterator

from moorage.htools.explain.reason import Reason, away, of_group
from moorage.htools.inst import Inst
from moorage.htools.placement.allocate import Asking
from moorage.htools.placement.grouping import lacks_network
from moorage.htools.placement.requests import Allocate
from moorage.htools.state import State


def untried(
    state: State, inst: Inst, request: Allocate, asking: Asking
) -> Iterator[Reason]:
    """Yield why groups and nodes were not considered."""
    allowed = asking.restrict
    if allowed is None and request.restrict is not None:
        allowed = frozenset(request.restrict)
    for at, view in state.split():
        group = state.groups[at]
        if request.group in (None, group.name, group.uuid):
            yield from _closed_group(view, at, inst, request)
            yield from _closed_nodes(view, at, request, allowed)


def _closed_group(
    view: State, at: int, inst: Inst, request: Allocate
) -> Iterator[Reason]:
    group = view.groups[at]
    if request.group is None and group.alloc_policy == "unallocable":
        yield of_group(group.name, "unallocable")
    if lacks_network(group, inst):
        missing = [name for name in inst.networks if name not in group.networks]
        yield of_group(group.name, "networks", not_connected_to=missing)


def _closed_nodes(
    view: State, at: int, request: Allocate, allowed: frozenset[str] | None
) -> Iterator[Reason]:
    name = view.groups[at].name
    yield from away(view)
    usable = [node.name for node in view.seen if not node.offline]
    if allowed is not None:
        kept = [one for one in usable if one in allowed]
        if kept != usable:
            yield of_group(name, "restricted", to=sorted(allowed))
        usable = kept
    if len(usable) < request.nodes:
        facts = {"usable": usable, "needed": request.nodes}
        yield of_group(name, "too few nodes", **facts)
