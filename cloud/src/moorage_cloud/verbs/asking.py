# SPDX-License-Identifier: BSD-2-Clause
"""From an act of a volume's life to the request that a cluster gets."""

from moorage_cloud.life import Act
from moorage_cloud.models import Operation, Snapshot, Volume
from moorage_cloud.requests import (
    Destroy,
    Grow,
    Leave,
    Take,
    VolumeRequest,
)
from moorage_cloud.requests import Snapshot as TakeSnapshot

GIB = 1024
"""MiB."""


def request_of(thing: Volume | Snapshot, operation: Operation) -> VolumeRequest:
    """Return what the operation's cluster is asked for now."""
    task = operation.task()
    server = operation.server
    instance = server.instance if server else None
    if isinstance(thing, Snapshot):
        return _about_snapshot(thing, task.act, instance)
    name = thing.backend_volume_uuid
    match task.act:
        case Act.TAKE:
            return _take(
                thing,
                name,
                instance,
                epoch=thing.epoch if thing.initialized else 0,
                adopt=thing.initialized,
            )
        case Act.LEAVE:
            return Leave(name=name, instance=instance)
        case Act.GROW:
            return Grow(name=name, instance=instance, size=task.size * GIB)
        case Act.DESTROY:
            return Destroy(name=name, instance=instance)
        case Act.COPY:
            raise AssertionError(operation)


def _about_snapshot(
    snapshot: Snapshot, act: Act, instance: str | None
) -> VolumeRequest:
    name = snapshot.backend_snapshot_name
    match act:
        case Act.COPY:
            volume = snapshot.volume.backend_volume_uuid
            return TakeSnapshot(name=volume, instance=instance, snapshot=name)
        case Act.TAKE:
            return _take(snapshot.volume, name, instance, epoch=0, adopt=True)
        case Act.LEAVE:  # the copy is nobody's
            return Leave(name=name)
        case Act.DESTROY:
            return Destroy(name=name, instance=instance)
        case Act.GROW:
            raise AssertionError(snapshot)


def _take(
    volume: Volume, name: str, instance: str | None, *, epoch: int, adopt: bool
) -> Take:
    kind = volume.volume_type
    return Take(
        name=name,
        instance=instance,
        size=volume.size * GIB,
        template=kind.template,
        provider="" if kind.pool else kind.provider,
        pool=kind.pool,
        params=kind.params,
        adopt=adopt,
        epoch=epoch,
        read_only=volume.read_only,
    )
