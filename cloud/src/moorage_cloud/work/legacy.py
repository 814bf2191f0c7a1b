# SPDX-License-Identifier: BSD-2-Clause
"""Volumes whose data an earlier version made: storage knows it by a cluster's name.

Each server's volumes get that name once, for the rest of their lives, on record and on
their cluster. The record comes first: if it ends in between, it is done again.
"""

import time
from collections.abc import Mapping, Sequence

from django.db import transaction
from msgspec import Struct

from moorage_cloud.clusters import Cluster, ClusterRefused, Disk, JobState
from moorage_cloud.errors import BadRequest, Conflict
from moorage_cloud.models import Backend, Operation, Server, Volume
from moorage_cloud.requests import Rename

_PAUSE = 0.1
"""Seconds between two looks at a job."""


class Naming(Struct, frozen=True):
    """A volume that gets another name.

    Attributes
    ----------
    disk
        As its cluster has it.
    legacy
        The name that an earlier version gave it; None for one that is made of its
        number.
    """

    volume: Volume
    disk: Disk
    legacy: str | None

    @property
    def name(self) -> str:
        """What it is called from now on."""
        return self.legacy or self.volume.numbered_name


class Plan(Struct, frozen=True):
    """What is to be done with a server."""

    server: Server
    namings: Sequence[Naming]


def plans(
    backends: Sequence[Backend], doors: Mapping[int, Cluster], *, restore: bool
) -> list[Plan]:
    """Return what is to be done with each server that it was not done with yet.

    Raises
    ------
    BadRequest
        If a cluster is off, or names cannot be given back.
    Conflict
        If verbs are under way on one of them.
    ClusterSilent
        If one does not answer.
    """
    for backend in backends:
        if backend.offline:
            raise BadRequest(f"cluster {backend} is off: nothing was changed")
    if Operation.objects.filter(backend__in=backends, ended=None).exists():
        raise Conflict(
            "verbs are under way: stop the API, and wait until the workers have done"
        )
    disks = {backend.pk: doors[backend.pk].disks() for backend in backends}
    servers = Server.objects.filter(
        backend__in=backends, deleted=False, helper=False, names_taken=restore
    )
    return [
        _plan(server, disks[server.backend_id], restore=restore)
        for server in servers.select_related("backend")
    ]


def carry_out(plan: Plan, door: Cluster, *, restore: bool) -> None:
    """Write the names down, and have the cluster use them.

    Raises
    ------
    ClusterRefused
        If it would not; then the record is as it was.
    Conflict
        If it could not; likewise.
    """
    if not restore:  # then, the old name is what finds a volume until all is done
        with transaction.atomic():
            for one in plan.namings:
                _write(one.volume, one.legacy)
    try:
        rename(plan, door)
    except (ClusterRefused, Conflict):
        with transaction.atomic():
            for one in plan.namings:
                _write(one.volume, one.volume.legacy_backend_volume_uuid)
        raise
    with transaction.atomic():
        for one in plan.namings:
            _write(one.volume, one.legacy)
        Server.objects.filter(pk=plan.server.pk).update(names_taken=not restore)


def rename(plan: Plan, door: Cluster, *, dry_run: bool = False) -> None:
    """Have the cluster call the disks so, or only say whether it would."""
    names = {
        one.disk.name or one.disk.slot: one.name
        for one in plan.namings
        if one.disk.name != one.name
    }
    if not names:
        return
    server = plan.server
    request = Rename(instance=server.instance, names=names, dry_run=dry_run)
    # A key of its own: that of an earlier try would bring back what that came to.
    key = f"names-{server.uuid}-{time.time_ns()}"
    number = door.submit(request, key, "cloud:legacy-names")
    while (job := door.job(number)).state is JobState.UNDER_WAY:
        time.sleep(_PAUSE)
    if job.state is not JobState.DONE:
        raise Conflict(f"job {number} of cluster {server.backend} failed: {job.why}")


def _plan(server: Server, disks: Sequence[Disk], *, restore: bool) -> Plan:
    its = [one for one in disks if one.instance == server.instance and one.provider]
    namings = []
    for place in server.attachments.select_related("volume"):
        volume = place.volume
        disk = _disk_of(volume, place.index, its)
        if restore and volume.legacy_backend_volume_uuid is not None:
            if disk and disk.volume != volume.legacy_backend_volume_uuid:
                raise BadRequest(
                    f"volume {volume.pk} was detached since: its data is known by "
                    f"'{volume.legacy_backend_volume_uuid}' alone, which cannot be "
                    "taken back"
                )
            if disk:
                namings.append(Naming(volume, disk, None))
        elif not restore and disk:
            namings.append(Naming(volume, disk, disk.volume))
    return Plan(server, namings)


def _disk_of(volume: Volume, index: int, disks: Sequence[Disk]) -> Disk | None:
    """Return a volume's disk: by one of its names, or one without any by its slot."""
    names = {volume.backend_volume_uuid, volume.numbered_name}
    for one in disks:
        if one.name in names or (not one.name and one.slot == str(index)):
            return one
    return None


def _write(volume: Volume, legacy: str | None) -> None:
    known = Volume.objects.filter(pk=volume.pk)
    known.update(legacy_backend_volume_uuid=legacy)
