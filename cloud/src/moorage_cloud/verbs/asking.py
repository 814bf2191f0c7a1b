# SPDX-License-Identifier: BSD-2-Clause
"""From an act of a volume's life to the request that a cluster gets."""

from moorage_cloud.life import Act, Verb
from moorage_cloud.models import Image, Operation, Snapshot, Volume
from moorage_cloud.models.volume import EPOCHS
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
Thing = Volume | Snapshot
"""What has a life of its own."""
Stored = Thing | Image
"""What a storage has."""


OF_ORIGINAL = frozenset({Act.BORROW, Act.COPY, Act.RETURN})
"""What is done with the original of a copy."""


def request_of(thing: Thing, operation: Operation) -> VolumeRequest:
    """Return what the operation's cluster is asked for now."""
    task = operation.task()
    about = original(thing) if task.act in OF_ORIGINAL else thing
    name, server = name_of(about), operation.server
    instance = server.instance if server else None
    if task.verb is Verb.COPY and about is thing:
        instance = None  # a copy is nobody's
    match task.act:
        case Act.TAKE:
            return _take(thing, instance, thing.generation)
        case Act.BORROW:
            return _take(about, instance, operation.borrowed)
        case Act.LEAVE | Act.RETURN:
            return Leave(name=name, instance=instance)
        case Act.COPY:
            return TakeSnapshot(name=name, instance=instance, snapshot=name_of(thing))
        case Act.GROW:
            return Grow(name=name, instance=instance, size=task.size * GIB)
        case Act.DESTROY:
            return Destroy(name=name, instance=instance)


def name_of(stored: Stored) -> str:
    """Return what the data is called on every cluster."""
    match stored:
        case Volume():
            return stored.backend_volume_uuid
        case Snapshot():
            return stored.backend_snapshot_name
        case Image():
            return stored.backend_image_name


def original(thing: Thing) -> Stored:
    """Return what a volume or a snapshot is a copy of; it must be one."""
    if isinstance(thing, Snapshot):
        return thing.volume
    found = thing.original
    assert found is not None  # noqa: S101 - who asks knows that it is a copy
    return found


def has_data(stored: Stored) -> bool:
    """Whether there is something to copy: a copy of nothing is nothing, too."""
    return isinstance(stored, Image) or stored.initialized


def _take(stored: Stored, instance: str | None, generation: int) -> Take:
    kind, adopt = stored.volume_type, has_data(stored)
    return Take(
        name=name_of(stored),
        instance=instance,
        size=stored.size * GIB,
        template=kind.template,
        provider="" if kind.pool else kind.provider,
        pool=kind.pool,
        params=kind.params,
        adopt=adopt,
        # Above those of all earlier attachments; a cluster counts on from there.
        epoch=generation * EPOCHS if adopt else 0,
        read_only=isinstance(stored, Volume) and stored.read_only,
    )
