# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools as queries show them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moorage.model import (
    Config,
    Disk,
    Node,
    NodeFacts,
    NodeGroup,
    StoragePool,
    Unit,
    nice,
)
from moorage.ops.volumes.directories import place, unit_at
from moorage.ops.volumes.pools import groups_of
from moorage.storage import Reach, template_named

from .field import Field, Missing, number, other, text, unit
from .objects import resource
from .snapshot import Snapshot


def _groups(snapshot: Snapshot, pool: StoragePool) -> list[str]:
    return [group.name for group in groups_of(snapshot.config, pool)]


def _disks(snapshot: Snapshot, pool: StoragePool) -> Iterator[Disk]:
    """Yield the disks of a pool, in no order: there may be very many."""
    for uuid in snapshot.config.pooled.get(pool.uuid, ()):
        disk = snapshot.config.objects[uuid]
        if isinstance(disk, Disk):
            yield disk


def _count(snapshot: Snapshot, pool: StoragePool) -> int:
    return len(snapshot.config.pooled.get(pool.uuid, ()))


def _labels(snapshot: Snapshot, pool: StoragePool) -> list[str]:
    return sorted((disk.label for disk in _disks(snapshot, pool)), key=nice)


def _size(snapshot: Snapshot, pool: StoragePool) -> int:
    return sum(disk.size for disk in _disks(snapshot, pool))


def _nodes(config: Config, pools: Iterable[StoragePool], _all: bool) -> Iterator[str]:
    for uuid in dict.fromkeys(group for pool in pools for group in pool.groups):
        for node in config.nodes_in(config.group(uuid)):
            if node.vm_capable:
                yield node.uuid


def _units(
    snapshot: Snapshot, group: NodeGroup, pool: StoragePool
) -> Iterator[tuple[Node, Unit]]:
    """Yield what each node told of the storage unit that the pool's disks are in."""
    name = unit_at(place(snapshot.config, group, pool))
    for node in snapshot.config.nodes_in(group):
        facts = snapshot.facts.get(node.uuid)
        units = facts.units if isinstance(facts, NodeFacts) else ()
        yield from ((node, unit) for unit in units if unit.name == name)


def _live(name: str, title: str, doc: str) -> Field:
    return unit(name, title, doc, _room(name), live=True, room=True)


def _room(name: str) -> Callable[[Snapshot, StoragePool], Any]:
    """Return what adds up room: of all nodes, or once where they share it."""

    def found(snapshot: Snapshot, pool: StoragePool) -> Any:  # noqa: ANN401
        told = [
            getattr(unit, name)
            for group in groups_of(snapshot.config, pool)
            for _, unit in _units(snapshot, group, pool)
        ]
        known = [room for room in told if room is not None]
        if not known:
            return Missing.NODATA
        shared = template_named(pool.template).capabilities.reach is Reach.GROUP
        return max(known) if shared else sum(known)

    return found


def _rooms(snapshot: Snapshot, pool: StoragePool) -> dict[str, list[int | None]]:
    """Return free and total of the pool's storage unit, by the nodes that tell it."""
    return {
        node.name: [unit.free, unit.total]
        for group in groups_of(snapshot.config, pool)
        for node, unit in _units(snapshot, group, pool)
    }


POOL = resource(
    "pool",
    StoragePool,
    fields=(
        text("name", "Pool", "Name"),
        text("template", "Template", "How its disks are stored"),
        text("provider", "Provider", "ExtStorage provider"),
        text("driver", "Driver", "Provider, or else template"),
        other("params", "Params", "What its disks get"),
        text("volume_name", "VolumeName", "Pattern of volumes' names"),
        number("longest", "Longest", "Characters of such a name"),
        other("groups", "NodeGroups", "Where it is connected", _groups),
        number("disk_cnt", "Disks", "How many disks are in it", _count),
        other("disk_list", "DiskList", "Their names", _labels),
        unit("size", "Size", "What is promised to guests", _size),
        _live("total", "Total", "Room of its storage"),
        _live("free", "Free", "Room to use"),
        other(
            "rooms",
            "Rooms",
            "Free and total on each node that reaches it; null where nobody can tell",
            _rooms,
            live=True,
            room=True,
        ),
    ),
    nodes=_nodes,
    brief=True,
)
