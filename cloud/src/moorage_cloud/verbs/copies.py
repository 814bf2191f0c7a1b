# SPDX-License-Identifier: BSD-2-Clause
"""What a volume or a snapshot is a copy of: which originals can be copied, and how.

A cluster copies what one of its servers has at once. What no server has, a cluster has
for the copy alone: it takes it, copies it, and leaves both.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.life import Copy, Status
from moorage_cloud.models import Image, Snapshot, Volume, VolumeType

from .asking import Stored, Thing
from .caller import Caller
from .changing import By, begin, changing, changing_snapshot
from .hindrances import of_server, refuse
from .reach import lender


@contextmanager
def holding_original(stored: Stored) -> Iterator[Stored]:
    """Hold what is to be copied until the end of the transaction; yield it as it is.

    Raises
    ------
    BadRequest
        If its state does not allow it.
    """
    match stored:
        case Volume():
            with changing(stored) as volume:
                check_copied(volume)
                yield volume
        case Snapshot():
            with changing_snapshot(stored) as snapshot:
                if snapshot.status != Status.AVAILABLE:
                    raise BadRequest(
                        "Invalid snapshot: Originating snapshot status must be one of "
                        f"'available' values, and is '{snapshot.status}' "
                        f"({snapshot.uuid})"
                    )
                yield snapshot
        case Image():
            with transaction.atomic():
                held = Image.objects.select_for_update(of=("self",))
                found = held.filter(pk=stored.pk, deleted=False).first()
                if found is None:
                    raise NotFound(f"Image {stored.uuid} could not be found.")
                yield found


def check_copied(volume: Volume) -> None:
    """Refuse a volume that cannot be copied now."""
    if volume.status not in {Status.AVAILABLE, Status.IN_USE}:
        raise BadRequest(
            f"Invalid volume: a volume that is copied must be available or in-use, and "
            f"{volume.uuid} is '{volume.status}'"
        )


def check_fits(stored: Stored, kind: VolumeType, size: int) -> None:
    """Refuse a copy that is smaller than the original, or in another storage."""
    what = type(stored).__name__.lower()
    if size < stored.size:
        raise BadRequest(
            f"Invalid input received: Volume size '{size}'GB cannot be smaller than "
            f"the {what} size {stored.size}GB. They must be >= the original {what} "
            "size."
        )
    if kind.place != stored.volume_type.place:
        raise BadRequest(
            f"{what} {stored.uuid} is stored as type '{stored.volume_type.name}' says, "
            f"and a volume of type '{kind.name}' is not: its data would have to move"
        )


def begin_copy(who: Caller, thing: Thing, stored: Stored) -> None:
    """Begin to copy what the transaction holds; it must have data.

    Raises
    ------
    Unavailable
        If no server has it, and no cluster can have it now.
    """
    grows = thing.size > stored.size
    place = stored.place if isinstance(stored, Volume) else None
    if place:
        refuse(of_server(place.server))
        by = By(place.server.backend, place.server)
    else:
        by = lender(stored)
        # What a cluster has it with is above what all others had it with.
        stored.generation += 1
        stored.save(update_fields=["generation"])
    server = by.server.pk if by.server else None
    begin(thing, Copy(server, borrows=place is None, grows=grows), who, by)
