# SPDX-License-Identifier: BSD-2-Clause
"""Where a volume is, by what the clusters have; and who is to let go of it.

A cluster's word about what it has wins over the record, unless two have one volume:
then the one that the record names keeps it, and the other one lets go of it. Whose disk
is newer than the record, its epoch tells: a backup of the database may have been put
back. What a guest has, and the record cannot say so, a person looks at: told to be
available, it would get a second one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from moorage_cloud.clusters import Cluster, Disk
from moorage_cloud.models import Backend, Server, Volume
from moorage_cloud.requests import Leave
from moorage_cloud.verbs.changing import set_right, set_size

from .finding import Finding


class Had(Struct, frozen=True):
    """A volume's disk on a cluster."""

    backend: Backend
    disk: Disk

    def is_newer(self, volume: Volume) -> bool:
        """Whether it was attached after what the record knows."""
        return self.disk.epoch > volume.epoch

    @property
    def where(self) -> str:
        """Where it is, in words."""
        name = self.disk.instance
        whose = f"instance {name}" if name else "no instance"
        return f"cluster {self.backend} has volume {self.disk.name} ({whose})"


class Record(Struct, frozen=True):
    """What is on record of clusters that are compared.

    Attributes
    ----------
    doors
        By the numbers of the clusters.
    servers
        By the numbers of their clusters, and their instances.
    """

    doors: Mapping[int, Cluster]
    servers: Mapping[tuple[int, str], Server]

    def server(self, had: Had) -> Server | None:
        """Return the server that has a disk."""
        return self.servers.get((had.backend.pk, had.disk.instance or ""))

    def lends(self, had: Had) -> bool:
        """Whether a cluster has a disk for a while: no server of a user's has it."""
        found = self.server(had)
        return had.disk.instance is None or bool(found and found.helper)

    def rightful(self, volume: Volume, had: Had) -> Server | None:
        """Return the server that has a disk, if a cluster's word is enough for that.

        Another project's is a matter for a person: after a backup of the database was
        put back, numbers of volumes, and so their names, are given again.
        """
        found = self.server(had)
        its_own = found and not found.helper and found.project == volume.project
        return found if its_own else None


def of_volume(
    record: Record, volume: Volume, everywhere: Sequence[Had]
) -> Iterator[Finding]:
    """Find what is wrong with where a volume is on which no verb is under way.

    Parameters
    ----------
    everywhere
        What the clusters that are compared have of it.
    """
    server = volume.server
    if server is None:
        for had in everywhere:
            yield _of_detached(record, volume, had)
        return
    others = [one for one in everywhere if one.backend.pk != server.backend_id]
    own = [one for one in everywhere if one not in others and one.disk.instance]
    newer = [one for one in others if one.disk.instance and one.is_newer(volume)]
    if own:
        if own[0].disk.instance != server.instance:
            yield _moved(record, volume, server, own[0])
        else:
            yield from _of_size(volume, own[0])
    elif newer:
        yield _moved(record, volume, server, newer[0])
        others.remove(newer[0])
    elif server.backend_id in record.doors:
        yield _found(
            server,
            f"volume {volume.backend_volume_uuid} is on record there, and not on "
            f"instance {server.instance}",
            partial(set_right, volume, None),
        )
    for had in others:
        yield _lets_go(record, volume, had, f"on server {server}")


def _of_size(volume: Volume, had: Had) -> Iterator[Finding]:
    """Find that the data is not as large as the record says.

    Who took it from a cluster that was off, while it grew, could not know.
    """
    size = -(-had.disk.size // 1024)
    if size != volume.size:
        yield Finding(
            "size",
            had.disk.name,
            f"{had.where} with {size} GiB, of which {volume.size} GiB are on record",
            partial(set_size, volume, size),
        )


def _of_detached(record: Record, volume: Volume, had: Had) -> Finding:
    """Return what is wrong with a disk of a volume that is on record as detached."""
    newer = had.is_newer(volume)
    # Whoever had it before the last one was cut off: its guest knows old data.
    if newer or volume.backend_id in {None, had.backend.pk}:
        server = record.rightful(volume, had)
        if server:
            return _found(
                server,
                f"it has volume {had.disk.name}, which is on record as detached",
                partial(set_right, volume, server),
            )
        known = record.server(had)
        anothers = known and not known.helper
        a_guest_has_it = newer and had.disk.instance
        if anothers or a_guest_has_it or not volume.initialized:
            return Finding(
                "disk",
                had.disk.name,
                f"{had.where}, which is on record as detached, of project "
                f"{volume.project}",
            )
    return _lets_go(record, volume, had, "as detached")


def _moved(record: Record, volume: Volume, server: Server, had: Had) -> Finding:
    """Return that another instance has it than the record says.

    What the record's own cluster has, nobody can tell where that was not asked.
    """
    asked = server.backend_id in record.doors
    right = record.rightful(volume, had) if asked else None
    return _found(
        server,
        f"volume {had.disk.name} is on record there, and {had.where}",
        partial(set_right, volume, right) if right else None,
    )


def _found(server: Server, what: str, repair: Callable[[], object] | None) -> Finding:
    sentence = f"Found unsynced disks for server {server.pk}: {what}"
    return Finding("disk", str(server), sentence, repair)


def _lets_go(record: Record, volume: Volume, had: Had, recorded: str) -> Finding:
    # A key of its own: with one for each generation, a job that failed would be the
    # last one.
    key = f"leave-{volume.uuid}-{had.backend.pk}-{time.time_ns()}"
    request = Leave(name=had.disk.name, instance=had.disk.instance)
    door = record.doors[had.backend.pk]
    return Finding(
        "disk",
        had.disk.name,
        f"{had.where}, which is on record {recorded}: it is to let go of it",
        partial(door.submit, request, key, "cloud:reconcile"),
    )
