# SPDX-License-Identifier: BSD-2-Clause
"""Servers, snapshots and images on record against what a cluster has."""

import time
from collections.abc import Iterator, Sequence
from functools import partial

from moorage_cloud.clusters import Cluster, Disk
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend, Image, Operation, Server, Snapshot
from moorage_cloud.requests import RUNNING, STOPPED, Leave
from moorage_cloud.verbs import server_is, server_is_gone

from .finding import Finding


def compare_servers(
    backend: Backend, servers: Sequence[Server], door: Cluster
) -> Iterator[Finding]:
    """Find servers that run or not, or are gone, other than their record says.

    Parameters
    ----------
    servers
        Those of the cluster, as they were on record before it was asked.
    """
    statuses = {one.name: one.status for one in door.instances()}
    for server in servers:
        if server.action or server.removal or server.operstate == Server.State.BUILD:
            continue  # its operation will tell
        status = statuses.get(server.instance)
        if status is None:
            yield Finding(
                "stale",
                str(server),
                f"Found stale server {server.pk}: cluster {backend} has no instance "
                f"{server.instance}",
                partial(server_is_gone, server),
            )
            continue
        state = _state(status)
        if state and server.operstate != state:
            yield Finding(
                "server",
                str(server),
                f"Found unsynced server {server.pk}: it is {server.operstate} on "
                f"record, and instance {server.instance} is {status}",
                partial(server_is, server, state),
            )


def _state(status: str) -> str | None:
    """Return what an instance's status says; None for what may pass."""
    if status in RUNNING:
        return Server.State.STARTED
    return Server.State.STOPPED if status in STOPPED else None


def compare_snapshots(
    backend: Backend, disks: Sequence[Disk], door: Cluster
) -> Iterator[Finding]:
    """Find copies that a cluster still has as disks: once made, they are nobody's."""
    for disk in disks:
        if not disk.name.startswith(f"{CONF.prefix}snap-"):
            continue
        snapshot = _named(disk.name)
        if snapshot is None:
            yield Finding(
                "orphan",
                disk.name,
                f"cluster {backend} has a disk {disk.name}, of which there is no "
                "snapshot on record",
            )
        elif not _is_busy(disk.name, snapshot=snapshot):
            # A key of its own: a job that failed is not to be the last one.
            key = f"leave-{snapshot.uuid}-{backend.pk}-{time.time_ns()}"
            request = Leave(name=disk.name, instance=disk.instance)
            yield Finding(
                "snapshot",
                disk.name,
                f"Found unsynced snapshot {snapshot.pk}: cluster {backend} has it as "
                f"disk {disk.name}, and is to let go of it",
                partial(door.submit, request, key, "cloud:reconcile"),
            )


def compare_images(
    backend: Backend, disks: Sequence[Disk], door: Cluster
) -> Iterator[Finding]:
    """Find images that a cluster had for a copy, and has still.

    Parameters
    ----------
    disks
        Those that no user's server has.
    """
    known = Image.objects.filter(deleted=False)
    names = set(known.values_list("backend_image_name", flat=True))
    for disk in disks:
        if disk.name in names and not _is_busy(disk.name):
            yield Finding(
                "snapshot",
                disk.name,
                f"cluster {backend} has image {disk.name} as a disk, and is to let go "
                "of it",
                partial(
                    door.submit,
                    Leave(name=disk.name, instance=disk.instance),
                    f"leave-{disk.name}-{backend.pk}-{time.time_ns()}",
                    "cloud:reconcile",
                ),
            )


def _is_busy(name: str, **thing: Snapshot) -> bool:
    """Whether something is done with data, or with a thing itself."""
    at_it = Operation.objects.filter(ended=None)
    return at_it.filter(data=name).exists() or (
        bool(thing) and at_it.filter(**thing).exists()
    )


def _named(name: str) -> Snapshot | None:
    volume, _, number = name.removeprefix(f"{CONF.prefix}snap-").partition("-")
    if not (volume.isdecimal() and number.isdecimal()):
        return None
    known = Snapshot.objects.filter(deleted=False)
    return known.filter(volume=int(volume), number=int(number)).first()
