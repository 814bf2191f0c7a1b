# SPDX-License-Identifier: BSD-2-Clause
"""A cluster in a quiet moment, compared with what it must be."""

from collections.abc import Iterator
from typing import Any

from expected import Expected

from moorage import model
from moorage.testing.cluster import SimCluster
from moorage.testing.storage import MIB


def contents(cluster: SimCluster) -> dict[str, dict[str, Any]]:
    """Return size (MiB) and data of every volume and file, by the volume's name."""
    san = cluster.nodes.san
    files = {
        key.partition(":")[2] or key: {**record, "size": record["size"] // MIB}
        for key, record in san.files.items()
    }
    return {**san.volumes, **files}


def write(cluster: SimCluster, node: str, place: str, data: str) -> None:
    """Write to where a guest has a disk, on its node."""
    san = cluster.nodes.san
    volume = place.removeprefix("/dev/")
    key = san._key(node, place)
    records = san.volumes if volume in san.volumes else san.files
    at = volume if volume in san.volumes else key
    records[at] = {**records[at], "data": data}


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
    yield from _volumes(cluster, expected)


def _records(config: model.Config, expected: Expected) -> Iterator[str]:
    """Compare what is recorded."""
    disks = {one.uuid: (one.name, one.size) for one in config.all(model.Disk)}
    wanted = {uuid: (one.name, one.size) for uuid, one in expected.disks.items()}
    yield from _unlike("disk", disks, wanted)
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


def _volumes(cluster: SimCluster, expected: Expected) -> Iterator[str]:
    """Compare what storage holds: nothing is lost, left or mixed up."""
    found = contents(cluster)
    known = {cluster.config.disk(u).volume: u for u in expected.disks}
    yield from (f"volume left: {name}" for name in found.keys() - known.keys())
    for volume, uuid in known.items():
        disk = expected.disks[uuid]
        label = f"disk {uuid} ({disk.name})"
        if volume not in found:
            yield f"volume lost: {volume} of {label}"
        elif found[volume]["size"] != disk.size:
            yield f"{label} has {found[volume]['size']} MiB, not {disk.size}"
        elif found[volume]["data"] not in disk.writes[-1:]:
            yield f"{label} holds {found[volume]['data']!r}, not {disk.writes[-1:]}"


def _unlike(kind: str, found: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for key in sorted(found.keys() | wanted.keys()):
        if found.get(key) != wanted.get(key):
            yield f"{kind} {key} is {found.get(key)}, not {wanted.get(key)}"
