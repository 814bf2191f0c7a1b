# SPDX-License-Identifier: BSD-2-Clause
"""What is on record against what the clusters have; nothing that is found is destroyed.

A cluster's word about what it has wins over the record, unless two have one volume:
then the one that the record names keeps it, and the other one lets go of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from django.db.models import Exists, OuterRef
from msgspec import Struct

from moorage_cloud.clusters import Cluster, Disk
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend, Operation, Server, Snapshot, Volume
from moorage_cloud.requests import Leave
from moorage_cloud.verbs.changing import Thing, give_up, set_right

from .doors import Connect
from .settling import settle


class Finding(Struct, frozen=True):
    """Something that is not as it should be.

    Attributes
    ----------
    kind
        ``job``, ``disk`` or ``orphan``.
    about
        The server or the volume.
    sentence
        What is wrong.
    repair
        Sets it right; None where a person has to look.
    """

    kind: str
    about: str
    sentence: str
    repair: Callable[[], object] | None = None


class Rest(Struct, frozen=True):
    """What no verb is under way of, as it was before and after the look.

    Attributes
    ----------
    volumes, copies
        Volumes and snapshots, by their names on the clusters.
    busy
        Names of the others.
    """

    volumes: Mapping[str, Volume]
    copies: Mapping[str, Snapshot]
    busy: frozenset[str]


def compare(backends: Sequence[Backend], connect: Connect) -> Iterator[Finding]:
    """Yield what differs, over these clusters.

    Raises
    ------
    ClusterSilent
        If one of them does not answer.
    """
    doors = {backend.pk: connect(backend) for backend in backends}
    yield from _waits_for_nothing()
    yield from _jobs(backends, doors)
    before = {_which(one): one.generation for one in _resting()}
    disks = {number: door.disks() for number, door in doors.items()}
    # What a verb did meanwhile is neither here nor there: it is no finding.
    still = [one for one in _resting() if before.get(_which(one)) == one.generation]
    known = _known(still)
    yield from _attachments(known, disks)
    for backend in backends:
        yield from _disks(known, backend, doors[backend.pk], disks[backend.pk])


def _jobs(
    backends: Sequence[Backend], doors: Mapping[int, Cluster]
) -> Iterator[Finding]:
    """Find verbs whose job has ended, and nobody heard of it."""
    waiting = Operation.objects.filter(
        backend__in=backends, ended=None, job__isnull=False
    ).select_related(
        "backend", "server", "volume__volume_type", "snapshot__volume__volume_type"
    )
    for one in waiting:
        door, number = doors[one.backend_id], one.job
        if number is None:
            continue
        job = door.job(number)
        yield Finding(
            "job",
            str(one.snapshot or one.volume or one.server),
            f"{one.verb} waits for job {number} of cluster {one.backend}, which is "
            f"{job.state.name.lower().replace('_', ' ')}",
            partial(settle, one, job, door),
        )


def _waits_for_nothing() -> Iterator[Finding]:
    """Find verbs of detached volumes whose cluster is off: another one can do it."""
    waiting = Operation.objects.filter(
        backend__offline=True,
        ended=None,
        volume__isnull=False,
        volume__attachment=None,
        snapshot=None,
    ).select_related("backend", "volume")
    for one in waiting:
        yield Finding(
            "job",
            str(one.volume),
            f"{one.verb} waits for cluster {one.backend}, which is off: it is given up",
            partial(give_up, one),
        )


def _which(thing: Thing) -> tuple[type[Thing], int]:
    return type(thing), thing.pk


def _resting() -> Iterator[Thing]:
    under_way = Operation.objects.filter(ended=None)
    ways = under_way.filter(volume=OuterRef("pk"), snapshot=None)
    volumes = Volume.objects.filter(~Exists(ways), deleted=False)
    yield from volumes.select_related("volume_type", "attachment__server__backend")
    ways = under_way.filter(snapshot=OuterRef("pk"))
    copies = Snapshot.objects.filter(~Exists(ways), deleted=False)
    yield from copies.select_related("volume")


def _known(still: Sequence[Thing]) -> Rest:
    volumes = {one.backend_volume_uuid: one for one in still if isinstance(one, Volume)}
    copies = {
        one.backend_snapshot_name: one for one in still if isinstance(one, Snapshot)
    }
    every = {one.backend_volume_uuid for one in Volume.objects.filter(deleted=False)}
    every |= {
        one.backend_snapshot_name for one in Snapshot.objects.filter(deleted=False)
    }
    return Rest(volumes, copies, frozenset(every - volumes.keys() - copies.keys()))


def _attachments(known: Rest, disks: Mapping[int, Sequence[Disk]]) -> Iterator[Finding]:
    """Find volumes that are on record as attached, and are not."""
    for name, volume in known.volumes.items():
        place = volume.place
        if place is None or place.server.backend_id not in disks:
            continue
        server = place.server
        has = {(one.name, one.instance) for one in disks[server.backend_id]}
        if (name, server.instance) not in has:
            yield Finding(
                "disk",
                str(server),
                f"Found unsynced disks for server {server.pk}: volume {name} is on "
                f"record there, and not on instance {server.instance}",
                partial(set_right, volume, None),
            )


def _disks(
    known: Rest, backend: Backend, door: Cluster, disks: Sequence[Disk]
) -> Iterator[Finding]:
    """Find disks that a cluster has, and should not, or that nobody has on record."""
    servers = {
        one.instance: one
        for one in Server.objects.filter(backend=backend, deleted=False)
    }
    ours = (f"{CONF.prefix}vol-", f"{CONF.prefix}snap-")
    for disk in disks:
        volume, copy = known.volumes.get(disk.name), known.copies.get(disk.name)
        if volume:
            yield from _stray(backend, door, disk, volume, servers)
        elif copy:
            yield _to_leave(backend, door, disk, copy, "as a copy that is nobody's")
        elif disk.name.startswith(ours) and disk.name not in known.busy:
            yield Finding(
                "orphan",
                disk.name,
                f"cluster {backend} has a disk {disk.name}, of which there is no "
                "volume or snapshot on record",
            )


def _stray(
    backend: Backend,
    door: Cluster,
    disk: Disk,
    volume: Volume,
    servers: Mapping[str, Server],
) -> Iterator[Finding]:
    place = volume.place
    if place and place.server.backend_id == backend.pk:
        return
    server = servers.get(disk.instance or "")
    # Whoever had it before the last one was cut off: its guest knows old data.
    # Data that nobody knew of was made here, by a cluster that was off meanwhile.
    last = volume.backend_id in {None, backend.pk} or not volume.initialized
    if place is None and last and server and not server.helper:
        yield Finding(
            "disk",
            str(server),
            f"Found unsynced disks for server {server.pk}: it has volume {disk.name}, "
            "which is on record as detached",
            partial(set_right, volume, server),
        )
        return
    where = f"on server {place.server}" if place else "as detached"
    yield _to_leave(backend, door, disk, volume, where)


def _to_leave(
    backend: Backend, door: Cluster, disk: Disk, thing: Thing, where: str
) -> Finding:
    """Find a disk that its cluster is to have no more; its data stays."""
    whose = f"instance {disk.instance}" if disk.instance else "no instance"
    key = f"leave-{thing.uuid}-{thing.generation}-{backend.pk}"
    request = Leave(name=disk.name, instance=disk.instance)
    return Finding(
        "disk",
        disk.name,
        f"cluster {backend} has {type(thing).__name__.lower()} {disk.name} ({whose}), "
        f"which is on record {where}: it is to let go of it",
        partial(door.submit, request, key, "cloud:reconcile"),
    )
