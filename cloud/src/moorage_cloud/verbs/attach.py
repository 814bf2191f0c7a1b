# SPDX-License-Identifier: BSD-2-Clause
"""A volume gets to a server, and leaves it."""

from moorage_cloud.errors import BadRequest, Unavailable
from moorage_cloud.life import Attach, CutOff, Detach, Status
from moorage_cloud.models import (
    Attachment,
    Server,
    Volume,
    VolumeType,
)

from .caller import Caller
from .changing import By, begin, changing, under_way
from .hindrances import is_silent, of_attach, of_server, refuse


def attach(who: Caller, volume: Volume, server: Server) -> Attachment:
    """Attach a volume; if that server has it or gets it already, nothing is changed.

    Returns
    -------
    Attachment
        Under way, unless it was there: its volume's status tells when the guest has
        the disk.

    Raises
    ------
    BadRequest
        If its state or the server's does not allow it, or the server's cluster does
        not see the storage.
    """
    with changing(volume) as held:
        place = held.place
        if place and place.server_id == server.pk and not _leaves(held):
            return place
        return attach_new(who, held, server)


def attach_new(who: Caller, held: Volume, server: Server) -> Attachment:
    """Attach a volume that the transaction holds; see :func:`attach`."""
    locked = Server.objects.select_for_update(of=("self",)).select_related("backend")
    server = locked.get(pk=server.pk)
    refuse(of_attach(held, server))
    begin(held, Attach(server.pk), who, By(server.backend, server))
    place = held.place
    assert place is not None  # noqa: S101 - what was begun has one
    return place


def detach(who: Caller, volume: Volume) -> None:
    """Take a volume from its server; its data stays in the storage.

    One that leaves already, or has none, is left alone.

    Raises
    ------
    BadRequest
        If its state or the server's does not allow it.
    """
    with changing(volume) as held:
        place = held.place
        if place is None or held.status == Status.DETACHING:
            return
        check_leaves(held, place)
        refuse(of_server(place.server))
        begin(held, Detach(), who, By(place.server.backend, place.server))


def force_detach(who: Caller, volume: Volume) -> None:
    """Take a volume from its server whatever its state says.

    A cluster that answers takes the disk off. One that does not is believed to be off
    when an administrator has said so, and not before: two could write to it. Then also
    what it was doing with a volume without a server is over.

    Raises
    ------
    BadRequest
        If another verb is under way, or it has no server.
    Unavailable
        If its cluster does not answer, and is not said to be off.
    """
    with changing(volume) as held:
        place, operation = held.place, under_way(held)
        if place:
            backend = place.server.backend
        elif operation:
            backend = operation.backend
        else:
            raise BadRequest(f"volume {held.uuid} is not attached")
        if backend.offline:
            why = "its cluster is off, and the volume was taken from it"
            begin(held, CutOff(why), who)
            return
        if operation and is_silent(operation):
            raise Unavailable(
                f"cluster {backend} does not answer, and a guest may write to volume "
                f"{held.uuid} there: it can be taken from it when an administrator has "
                "said that the cluster is off"
            )
        if held.status == Status.DETACHING:
            return
        begin(held, Detach(), who, By(backend, place.server if place else None))


def check_leaves(volume: Volume, place: Attachment) -> None:
    """Refuse to take a server's own disk, or one that cannot be without a server."""
    if place.index == 0:
        raise BadRequest(
            f"volume {volume.uuid} is what server {place.server.uuid} starts from"
        )
    check_detachable(volume.volume_type)


def check_detachable(kind: VolumeType) -> None:
    """Refuse a type whose volumes cannot be without a server."""
    if not kind.detachable:
        raise BadRequest(f"Volume type '{kind.name}' is not detachable")


def _leaves(volume: Volume) -> bool:
    return volume.status in {Status.DETACHING, Status.DELETING}
