# SPDX-License-Identifier: BSD-2-Clause
"""What is on record against what the clusters have; nothing that is found is destroyed.

What is done about a volume that is not where it should be, `whereabouts.py` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from moorage_cloud.clusters import Cluster
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend, Operation, Server, Volume

from .comparing_servers import compare_images, compare_servers, compare_snapshots
from .doors import Connect
from .finding import Finding
from .settling import settle
from .whereabouts import Had, Record, of_volume


def compare(backends: Sequence[Backend], connect: Connect) -> Iterator[Finding]:
    """Yield what differs, over these clusters.

    Raises
    ------
    ClusterSilent
        If one of them does not answer.
    """
    doors = {backend.pk: connect(backend) for backend in backends}
    yield from _jobs(backends, doors)
    before = {one.pk: one.generation for one in _resting()}
    disks = {number: door.disks() for number, door in doors.items()}
    # What a verb did meanwhile is neither here nor there: it is no finding.
    still = [one for one in _resting() if before.get(one.pk) == one.generation]
    rest = {one.backend_volume_uuid: one for one in still}
    names = {one.backend_volume_uuid for one in Volume.objects.filter(deleted=False)}
    servers = {
        (one.backend_id, one.instance): one
        for one in Server.objects.filter(backend__in=backends, deleted=False)
    }
    record = Record(doors, servers)
    had: dict[str, list[Had]] = {name: [] for name in rest}
    for backend in backends:
        for disk in disks[backend.pk]:
            if disk.name in had:
                had[disk.name].append(Had(backend, disk))
            elif disk.name.startswith(f"{CONF.prefix}vol-") and disk.name not in names:
                yield Finding(
                    "orphan",
                    disk.name,
                    f"cluster {backend} has a disk {disk.name}, of which there is no "
                    "volume on record",
                )
    for name, volume in rest.items():
        yield from of_volume(record, volume, had[name])
    for backend in backends:  # a server that is gone has no volumes by then
        door = doors[backend.pk]
        yield from compare_snapshots(backend, disks[backend.pk], door)
        lent = [one for one in disks[backend.pk] if record.lends(Had(backend, one))]
        yield from compare_images(backend, lent, door)
        there = [one for one in servers.values() if one.backend_id == backend.pk]
        yield from compare_servers(backend, there, door)


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


def _resting() -> Iterator[Volume]:
    """Yield what nothing is done with: neither with itself, nor to copy it."""
    under_way = Operation.objects.filter(ended=None)
    busy = set(under_way.filter(snapshot=None).values_list("volume", flat=True))
    copied = set(under_way.values_list("data", flat=True))
    found = Volume.objects.filter(deleted=False)
    for one in found.select_related("volume_type", "attachment__server__backend"):
        if one.pk not in busy and one.backend_volume_uuid not in copied:
            yield one
