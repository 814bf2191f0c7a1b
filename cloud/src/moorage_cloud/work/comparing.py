# SPDX-License-Identifier: BSD-2-Clause
"""What is on record against what the clusters have; nothing that is found is destroyed.

A cluster's word about what it has wins over the record, unless two have one volume:
then the one that the record names keeps it, and the other one lets go of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from moorage_cloud.clusters import Cluster, Disk
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend, Image, Operation, Server, Snapshot, Volume
from moorage_cloud.requests import Leave
from moorage_cloud.verbs.asking import Stored, name_of
from moorage_cloud.verbs.changing import set_right

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


class Record(Struct, frozen=True):
    """What is on record.

    Attributes
    ----------
    things
        Those with which nothing is done, as they were before and after the look, by
        their names on the clusters: volumes, snapshots, images.
    busy
        Names of the others.
    servers
        By the numbers of their clusters, and their instances.
    """

    things: Mapping[str, Stored]
    busy: frozenset[str]
    servers: Mapping[tuple[int, str], Server]

    def server(self, backend: int, instance: str | None) -> Server | None:
        """Return the server that an instance of a cluster is."""
        return self.servers.get((backend, instance or ""))


def compare(backends: Sequence[Backend], connect: Connect) -> Iterator[Finding]:
    """Yield what differs, over these clusters.

    Raises
    ------
    ClusterSilent
        If one of them does not answer.
    """
    doors = {backend.pk: connect(backend) for backend in backends}
    yield from _jobs(backends, doors)
    before = {one.uuid: one.generation for one in _resting()}
    disks = {number: door.disks() for number, door in doors.items()}
    # What a verb did meanwhile is neither here nor there: it is no finding.
    still = [one for one in _resting() if before.get(one.uuid) == one.generation]
    rest = {name_of(one): one for one in still}
    names = {name_of(one) for one in _known()}
    servers = {
        (one.backend_id, one.instance): one
        for one in Server.objects.filter(backend__in=backends, deleted=False)
    }
    known = Record(rest, frozenset(names - rest.keys()), servers)
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


def _known() -> Iterator[Stored]:
    yield from Volume.objects.filter(deleted=False).select_related(
        "volume_type", "attachment__server__backend"
    )
    yield from Snapshot.objects.filter(deleted=False).select_related("volume")
    yield from Image.objects.filter(deleted=False)


def _resting() -> Iterator[Stored]:
    """Yield what nothing is done with: neither with itself, nor to copy it."""
    under_way = list(Operation.objects.filter(ended=None))
    data = {one.data for one in under_way}
    snapshots = {one.snapshot_id for one in under_way}
    volumes = {one.volume_id for one in under_way if one.snapshot_id is None}
    for one in _known():
        if name_of(one) in data:
            continue
        match one:
            case Volume(pk=number) if number in volumes:
                continue
            case Snapshot(pk=number) if number in snapshots:
                continue
        yield one


def _attachments(
    known: Record, disks: Mapping[int, Sequence[Disk]]
) -> Iterator[Finding]:
    """Find volumes that are on record as attached, and are not."""
    has = {
        number: {one.name: one.instance for one in found}
        for number, found in disks.items()
    }
    for name, volume in known.things.items():
        if not isinstance(volume, Volume):
            continue
        place = volume.place
        if place is None or place.server.backend_id not in has:
            continue
        server = place.server
        where = has[server.backend_id].get(name)
        if where == server.instance:
            continue
        found = (
            f"Found unsynced disks for server {server.pk}: volume {name} is on record"
        )
        if where is None:
            yield Finding(
                "disk",
                str(server),
                f"{found} there, and not on instance {server.instance}",
                partial(set_right, volume, None),
            )
            continue
        # A guest has it, whatever that is called: it is not to be had elsewhere.
        other = known.server(server.backend_id, where)
        yield Finding(
            "disk",
            str(server),
            f"{found} on instance {server.instance}, and is on instance {where}",
            partial(set_right, volume, other) if _may_have(other, volume) else None,
        )


def _may_have(server: Server | None, volume: Volume) -> bool:
    """Whether a cluster's word is enough that a server has a volume.

    That of another project is a matter for a person: after a backup of the database
    was restored, numbers of volumes, and so their names, are given again.
    """
    return bool(server and not server.helper and server.project == volume.project)


def _disks(
    known: Record, backend: Backend, door: Cluster, disks: Sequence[Disk]
) -> Iterator[Finding]:
    """Find disks that a cluster has, and should not, or that nobody has on record."""
    ours = (f"{CONF.prefix}vol-", f"{CONF.prefix}snap-")
    for disk in disks:
        thing = known.things.get(disk.name)
        if isinstance(thing, Volume):
            yield from _stray(known, backend, door, disk, thing)
        elif isinstance(thing, Snapshot) or (thing and _lent(known, backend, disk)):
            yield _to_let_go(backend, door, disk, "as detached")
        elif disk.name.startswith(ours) and disk.name not in known.busy:
            yield Finding(
                "orphan",
                disk.name,
                f"cluster {backend} has a disk {disk.name}, of which there is no "
                "volume on record",
            )


def _stray(
    known: Record, backend: Backend, door: Cluster, disk: Disk, volume: Volume
) -> Iterator[Finding]:
    place = volume.place
    if place and place.server.backend_id == backend.pk:
        return
    recorded = f"on server {place.server}" if place else "as detached"
    found = _has(backend, disk, recorded)
    # Whoever had it before the last one was cut off: its guest knows old data.
    last = volume.backend_id in {None, backend.pk}
    server = known.server(backend.pk, disk.instance)
    if place is None and last and server and _may_have(server, volume):
        yield Finding(
            "disk",
            str(server),
            f"Found unsynced disks for server {server.pk}: it has volume {disk.name}, "
            "which is on record as detached",
            partial(set_right, volume, server),
        )
        return
    anothers = server and not server.helper and server.project != volume.project
    if place is None and last and (anothers or not volume.initialized):
        yield Finding("disk", disk.name, f"{found}, of project {volume.project}")
        return
    yield _to_let_go(backend, door, disk, recorded)


def _has(backend: Backend, disk: Disk, recorded: str) -> str:
    whose = f"instance {disk.instance}" if disk.instance else "no instance"
    return (
        f"cluster {backend} has volume {disk.name} ({whose}), which is on record "
        f"{recorded}"
    )


def _lent(known: Record, backend: Backend, disk: Disk) -> bool:
    """Whether a cluster had it for a copy only: no server of a user's has it."""
    server = known.server(backend.pk, disk.instance)
    return disk.instance is None or bool(server and server.helper)


def _to_let_go(backend: Backend, door: Cluster, disk: Disk, recorded: str) -> Finding:
    # A key of its own: with one for each generation, a job that failed would be the
    # last one.
    key = f"leave-{disk.name}-{backend.pk}-{time.time_ns()}"
    request = Leave(name=disk.name, instance=disk.instance)
    return Finding(
        "disk",
        disk.name,
        f"{_has(backend, disk, recorded)}: it is to let go of it",
        partial(door.submit, request, key, "cloud:reconcile"),
    )
