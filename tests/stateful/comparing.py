# SPDX-License-Identifier: BSD-2-Clause
"""A cluster in a quiet moment, compared with what it must be."""

import re
from collections.abc import Iterator
from typing import Any

import fleet
from expected import Expected
from fleet import unlike
from things import Disk

from moorage import model
from moorage.testing import contents
from moorage.testing.arguments import Records
from moorage.testing.cluster import SimCluster
from moorage.testing.stored import EXPORTS_DIR
from moorage.units import MIB

MIRROR = "/dev/drbd"
_HALF = re.compile(r"\.(new|old)/")
"""In the path of a file of an export that is not whole, or is replaced."""


Place = tuple[Records, str]
"""Where the record of a volume is."""


def places(cluster: SimCluster) -> dict[str, list[Place]]:
    """Return where the copies of each volume are, by the last part of its name."""
    san = cluster.nodes.san
    found: dict[str, list[Place]] = {}
    for records in (san.volumes, san.files, san.logical):
        for key in records:
            if EXPORTS_DIR not in key:
                found.setdefault(place_of(key), []).append((records, key))
    return found


def place_of(volume: str) -> str:
    """Return the last part of a volume's name, which is another one for each."""
    return volume.rpartition("/")[2]


def data_of(cluster: SimCluster, uuid: str) -> list[str]:
    """Return what each copy of a disk holds."""
    volume = place_of(cluster.config.disk(uuid).volume)
    return [records[key]["data"] for records, key in places(cluster).get(volume, ())]


def write(cluster: SimCluster, uuid: str, data: str) -> None:
    """Write to a disk that nobody uses, and to both copies of a mirrored one."""
    for records, key in places(cluster)[place_of(cluster.config.disk(uuid).volume)]:
        records[key] = {**records[key], "data": data}


def write_by(cluster: SimCluster, node: str, drive: str, data: str) -> None:
    """Write as a guest does, to what its node calls a drive."""
    san = cluster.nodes.san
    if drive.startswith(MIRROR):
        san.drbd.write(node, int(drive.removeprefix(MIRROR)), data)
        return
    found = contents.place(san, node, drive)
    assert found, f"nothing is at {drive} on {node}"
    records, key = found
    records[key] = {**records[key], "data": data}


def exports(cluster: SimCluster) -> set[tuple[str, str]]:
    """Return node and name of each export, and of each that is half made."""
    mark = f":{EXPORTS_DIR}/"
    split = (key.partition(mark) for key in cluster.nodes.san.files if mark in key)
    return {(node, path.partition("/")[0]) for node, _, path in split}


def clear_up(cluster: SimCluster, off: set[str]) -> None:
    """Do away with what jobs told of: copies on nodes that were off, half exports."""
    san, config = cluster.nodes.san, cluster.config
    known = {
        f"{node} {'/'.join(volume)}"
        for disk in config.all(model.Disk)
        for volume in disk.volumes
        for node in (config.node(uuid).name for uuid in disk.nodes)
    }
    for key in san.logical.keys() - known:
        if key.partition(" ")[0] in off and key.endswith(("_data", "_meta")):
            del san.logical[key]
    for key in [key for key in san.files if EXPORTS_DIR in key and _HALF.search(key)]:
        del san.files[key]


def guests(cluster: SimCluster) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return node and record of each guest's processes, by the instance's uuid."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for key, record in cluster.nodes.san.guests.items():
        node, uuid = key.split(" ")
        found.setdefault(uuid, []).append((node, record))
    return found


def memory(cluster: SimCluster, node: str) -> int:
    """Return how much memory the guests of a node have, MiB."""
    there = (one for two in guests(cluster).values() for one in two)
    return sum(record["state"]["memory"] for at, record in there if at == node)


def held(cluster: SimCluster) -> set[str]:
    """Return ``node uuid`` of each disk that a node's agent holds."""
    return {
        f"{name} {path.name}"
        for name, node in cluster.nodes.nodes.items()
        if node.powered
        for path in (node._directory / "held").iterdir()
    }


def due(config: model.Config) -> set[str]:
    """Return ``node uuid`` of each disk that is on record as attached there."""
    active = [one for one in config.all(model.Instance) if one.disks_active]
    return {
        f"{config.node(node).name} {uuid}"
        for one in active
        for uuid in one.disks
        for node in (one.primary_node, *_followers(config.disk(uuid)))
    }


def _followers(disk: model.Disk) -> tuple[str, ...]:
    return disk.nodes if disk.children else ()


def differences(cluster: SimCluster, expected: Expected) -> Iterator[str]:
    """Yield a line for each thing that is not as it must be."""
    yield from cluster.nodes.san.broken
    yield from (f"lock left: {row}" for row in cluster.engine.locks.rows())
    yield from (f"slot left: {job}" for job in cluster.engine.slots.holders)
    yield from _records(cluster.config, expected)
    yield from _dangling(cluster.config)
    yield from fleet.differences(cluster, expected)
    yield from _volumes(cluster, expected)
    one_sided = exports(cluster) ^ expected.exports.keys()
    yield from (f"export that is there or not: {one}" for one in sorted(one_sided))


def _named_alike(config: model.Config) -> Iterator[str]:
    """Tell disks of one name that stand beside each other, or are one volume so."""
    seen: set[tuple[str, str]] = set()
    for disk in config.all(model.Disk):
        owner = config.owner(disk)
        of = [(owner.uuid if owner else "nobody", disk.name)] if disk.name else []
        if disk.by_name and disk.known_as:
            of.append(("its storage", disk.known_as))
        yield from (f"{one} means two disks" for one in seen.intersection(of))
        seen.update(of)


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
    yield from unlike("disk", disks, wanted)
    for uuid, disk in expected.disks.items():
        if config.disk(uuid).epoch < disk.moves:
            yield f"disk {disk.name} has an epoch of the past"
    yield from _named_alike(config)
    connected = {
        one.name: {config.group(group).name for group in one.groups}
        for one in config.all(model.StoragePool)
    }
    yield from unlike("pool", connected, expected.pools)
    instances = {
        one.name: (
            *(config.node(one.primary_node).name, one.admin_state == "up"),
            *(list(one.disks), set(one.tags)),
        )
        for one in config.all(model.Instance)
    }
    homes = {
        name: (one.node, one.up, one.disks, one.tags)
        for name, one in expected.instances.items()
    }
    yield from unlike("instance", instances, homes)
    yield from (
        f"disk {one.label} is quarantined: {one.quarantine}"
        for one in config.all(model.Disk)
        if one.quarantine
    )


def _dangling(config: model.Config) -> Iterator[str]:
    """Tell what is named in a record and does not exist."""
    for disk in config.all(model.Disk):
        named = (disk.pool, disk.group, *disk.nodes)
        gone = {it for it in named if it and it not in config.objects}
        yield from (f"disk {disk.label} names {uuid}" for uuid in gone)
    for instance in config.all(model.Instance):
        named = (instance.primary_node, *instance.disks)
        gone = {it for it in named if it not in config.objects}
        yield from (f"instance {instance.name} names {uuid}" for uuid in gone)


def _volumes(cluster: SimCluster, expected: Expected) -> Iterator[str]:
    """Compare what storage holds: nothing is lost, left or mixed up."""
    found, config = places(cluster), cluster.config
    known = {
        place_of(volume[-1])
        for u in expected.disks
        for volume in config.disk(u).volumes
    }
    left = found.keys() - known - expected.theirs
    yield from (f"volume left: {name}" for name in left)
    lost = expected.theirs - found.keys()
    yield from (f"somebody's volume is gone: {name}" for name in lost)
    for uuid, disk in expected.disks.items():
        recorded = config.disk(uuid)
        copies = found.get(place_of(recorded.volume), [])
        wanted = len(recorded.nodes) if recorded.children else 1
        if len(copies) != wanted:
            yield f"disk {disk.name} has {len(copies)} volumes, not {wanted}: {copies}"
        yield from filter(None, (_size(disk, *copy) for copy in copies))
        yield from _data(cluster, uuid, disk)


def _size(disk: Disk, records: Records, key: str) -> str:
    unit = MIB if key.startswith("/") or ":" in key else 1
    size = records[key]["size"] // unit
    if size == disk.size or (disk.roomy and size > disk.size):
        return ""
    return f"volume {key} of {disk.name} has {size} MiB, not {disk.size}"


def _data(cluster: SimCluster, uuid: str, disk: Disk) -> Iterator[str]:
    """Tell what a disk lacks: the copy that its guest has counts, or else any."""
    held, last = data_of(cluster, uuid), disk.writes[-1]
    if last not in held:
        yield f"disk {disk.name} holds {held}, not {last}"
    for node, record in (one for two in guests(cluster).values() for one in two):
        if uuid in record["state"]["disks"]:
            seen = contents.read(cluster.nodes.san, node, record["drives"][uuid])
            if seen != last:
                yield f"the guest on {node} reads {seen} of {disk.name}, not {last}"
