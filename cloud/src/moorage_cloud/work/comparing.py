# SPDX-License-Identifier: BSD-2-Clause
"""What is on record against what the clusters have; nothing that is found is destroyed.

A cluster's word about what it has wins over the record, unless two have one volume:
then the one that the record names keeps it, and the other one lets go of it.
"""

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


class Rest(Struct, frozen=True):
    """Volumes with which nothing is done, as they were before and after the look.

    Attributes
    ----------
    things
        Snapshots and images, too, by their names on the clusters.
    busy
        Names of the others.
    """

    things: Mapping[str, Stored]
    busy: frozenset[str]


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
    known = Rest(rest, frozenset(names - rest.keys()))
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


def _attachments(known: Rest, disks: Mapping[int, Sequence[Disk]]) -> Iterator[Finding]:
    """Find volumes that are on record as attached, and are not."""
    for name, volume in known.things.items():
        place = volume.place if isinstance(volume, Volume) else None
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
                partial(set_right, place.volume, None),
            )


def _disks(
    known: Rest, backend: Backend, door: Cluster, disks: Sequence[Disk]
) -> Iterator[Finding]:
    """Find disks that a cluster has, and should not, or that nobody has on record."""
    ours = (f"{CONF.prefix}vol-", f"{CONF.prefix}snap-")
    servers = {
        one.instance: one
        for one in Server.objects.filter(backend=backend, deleted=False)
    }
    for disk in disks:
        thing = known.things.get(disk.name)
        if isinstance(thing, Volume):
            yield from _stray(backend, door, disk, thing, servers)
        elif thing and (isinstance(thing, Snapshot) or _lent(disk, servers)):
            yield _to_let_go(backend, door, disk, thing)
        elif disk.name.startswith(ours) and disk.name not in known.busy:
            yield Finding(
                "orphan",
                disk.name,
                f"cluster {backend} has a disk {disk.name}, of which there is no "
                "volume on record",
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
    last = volume.backend_id in {None, backend.pk}
    if place is None and last and server and not server.helper:
        yield Finding(
            "disk",
            str(server),
            f"Found unsynced disks for server {server.pk}: it has volume {disk.name}, "
            "which is on record as detached",
            partial(set_right, volume, server),
        )
        return
    yield _to_let_go(backend, door, disk, volume)


def _lent(disk: Disk, servers: Mapping[str, Server]) -> bool:
    """Whether a cluster had it for a copy only: no server of a user's has it."""
    server = servers.get(disk.instance or "")
    return disk.instance is None or bool(server and server.helper)


def _to_let_go(backend: Backend, door: Cluster, disk: Disk, thing: Stored) -> Finding:
    place = thing.place if isinstance(thing, Volume) else None
    whose = f"instance {disk.instance}" if disk.instance else "no instance"
    key = f"leave-{thing.uuid}-{thing.generation}-{backend.pk}"
    request = Leave(name=disk.name, instance=disk.instance)
    return Finding(
        "disk",
        disk.name,
        f"cluster {backend} has {type(thing).__name__.lower()} {disk.name} ({whose}), "
        f"which is on record {f'on server {place.server}' if place else 'as detached'}"
        ": it is to let go of it",
        partial(door.submit, request, key, "cloud:reconcile"),
    )
