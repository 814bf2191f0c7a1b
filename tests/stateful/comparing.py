# SPDX-License-Identifier: BSD-2-Clause
"""A cluster in a quiet moment, compared with what it must be."""

from collections.abc import Iterator
from typing import Any

from expected import Expected

from moorage import model
from moorage.testing.cluster import SimCluster
from moorage.testing.stored import MIB, Records


def places(cluster: SimCluster) -> dict[str, tuple[Records, str]]:
    """Return where the record of each volume is, by the last part of its name."""
    san = cluster.nodes.san
    return {
        key.rpartition("/")[2]: (records, key)
        for records in (san.volumes, san.files, san.logical)
        for key in records
    }


def place_of(volume: str) -> str:
    """Return the last part of a volume's name, which is another one for each."""
    return volume.rpartition("/")[2]


def contents(cluster: SimCluster) -> dict[str, tuple[int, str]]:
    """Return size (MiB) and data of every volume."""
    files = cluster.nodes.san.files
    return {
        name: (
            records[key]["size"] // (MIB if records is files else 1),
            records[key]["data"],
        )
        for name, (records, key) in places(cluster).items()
    }


def write(cluster: SimCluster, place: str, data: str) -> None:
    """Write to a volume."""
    records, key = places(cluster)[place_of(place)]
    records[key] = {**records[key], "data": data}


def guests(cluster: SimCluster) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return node and record of each guest's processes, by the instance's uuid."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for key, record in cluster.nodes.san.guests.items():
        node, uuid = key.split(" ")
        found.setdefault(uuid, []).append((node, record))
    return found


def held(cluster: SimCluster) -> set[str]:
    """Return ``node uuid`` of each disk that a node's agent holds."""
    return {
        f"{name} {path.name}"
        for name, node in cluster.nodes.nodes.items()
        for path in (node._directory / "held").iterdir()
    }


def due(config: model.Config) -> set[str]:
    """Return ``node uuid`` of each disk that is on record as attached there."""
    return {
        f"{one.primary_node} {disk}"
        for one in config.all(model.Instance)
        if one.disks_active
        for disk in one.disks
    }


def differences(cluster: SimCluster, expected: Expected) -> Iterator[str]:
    """Yield a line for each thing that is not as it must be."""
    yield from cluster.nodes.san.broken
    yield from (f"lock left: {row}" for row in cluster.engine.locks.rows())
    yield from (f"slot left: {job}" for job in cluster.engine.slots.holders)
    yield from _records(cluster.config, expected)
    yield from _dangling(cluster.config)
    yield from _volumes(cluster, expected)


def _records(config: model.Config, expected: Expected) -> Iterator[str]:
    """Compare what is recorded."""
    pools = {one.uuid: one.name for one in config.all(model.StoragePool)}
    disks = {
        it.uuid: (it.name, it.size, it.dev_type, pools.get(it.pool), set(it.tags))
        for it in config.all(model.Disk)
    }
    wanted = {
        uuid: (it.name, it.size, it.template, it.pool, it.tags)
        for uuid, it in expected.disks.items()
    }
    yield from _unlike("disk", disks, wanted)
    for uuid, disk in expected.disks.items():
        if config.disk(uuid).epoch < disk.moves:
            yield f"disk {disk.name} has an epoch of the past"
    connected = {
        one.name: {config.group(group).name for group in one.groups}
        for one in config.all(model.StoragePool)
    }
    yield from _unlike("pool", connected, expected.pools)
    instances = {
        one.name: (one.primary_node, one.admin_state == "up", list(one.disks))
        for one in config.all(model.Instance)
    }
    homes = {
        name: (one.node, one.up, one.disks) for name, one in expected.instances.items()
    }
    yield from _unlike("instance", instances, homes)
    offline = {one.name for one in config.all(model.Node) if one.offline}
    yield from (f"offline or not: {name}" for name in offline ^ expected.offline)
    yield from (
        f"disk {one.label} is quarantined: {one.quarantine}"
        for one in config.all(model.Disk)
        if one.quarantine
    )


def _dangling(config: model.Config) -> Iterator[str]:
    """Tell what is named in a record and does not exist."""
    for disk in config.all(model.Disk):
        named = (disk.pool, disk.group, disk.last_node, *disk.nodes)
        gone = {it for it in named if it and it not in config.objects}
        yield from (f"disk {disk.label} names {uuid}" for uuid in gone)
    for instance in config.all(model.Instance):
        named = (instance.primary_node, *instance.disks)
        gone = {it for it in named if it not in config.objects}
        yield from (f"instance {instance.name} names {uuid}" for uuid in gone)


def _volumes(cluster: SimCluster, expected: Expected) -> Iterator[str]:
    """Compare what storage holds: nothing is lost, left or mixed up."""
    found = contents(cluster)
    known = {place_of(cluster.config.disk(u).volume): u for u in expected.disks}
    yield from (f"volume left: {name}" for name in found.keys() - known.keys())
    for volume, uuid in known.items():
        disk = expected.disks[uuid]
        size, data = found.get(volume, (0, "nothing: it is lost"))
        if size != disk.size and not (disk.roomy and size > disk.size):
            yield f"volume {volume} of {disk.name} has {size} MiB, not {disk.size}"
        if data != disk.writes[-1]:
            yield f"volume {volume} of {disk.name} holds {data}, not {disk.writes[-1]}"


def _unlike(kind: str, found: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for key in sorted(found.keys() | wanted.keys()):
        if found.get(key) != wanted.get(key):
            yield f"{kind} {key} is {found.get(key)}, not {wanted.get(key)}"
