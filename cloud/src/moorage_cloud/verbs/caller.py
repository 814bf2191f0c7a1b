# SPDX-License-Identifier: BSD-2-Clause
"""Who asks, and what of the database is theirs."""

from uuid import UUID

from django.db.models import Q, QuerySet
from msgspec import Struct

from moorage_cloud.errors import NotFound
from moorage_cloud.models import (
    Image,
    Server,
    Snapshot,
    TypeAccess,
    Volume,
    VolumeType,
)


class Caller(Struct, frozen=True):
    """Who asks.

    Attributes
    ----------
    admin
        Whether everybody's things are theirs.
    request_id
        Of the request; it stands in the cluster's job.
    global_request_id
        What the client calls it; it stands there, too.
    """

    user: str
    project: str
    admin: bool = False
    request_id: str = ""
    global_request_id: str = ""


def volumes(who: Caller) -> QuerySet[Volume]:
    """Return the volumes that somebody can see."""
    found = Volume.objects.filter(deleted=False).select_related(
        "volume_type", "attachment__server"
    )
    return found if who.admin else found.filter(project=who.project)


def volume(who: Caller, name: str) -> Volume:
    """Return a volume by its uuid.

    Raises
    ------
    NotFound
        If there is none, or it is somebody else's.
    """
    found = volumes(who).filter(uuid=_uuid("Volume", name)).first()
    if found is None:
        raise NotFound(f"Volume {name} could not be found.")
    return found


def snapshots(who: Caller) -> QuerySet[Snapshot]:
    """Return the snapshots that somebody can see."""
    found = Snapshot.objects.filter(deleted=False).select_related("volume__volume_type")
    return found if who.admin else found.filter(project=who.project)


def snapshot(who: Caller, name: str) -> Snapshot:
    """Return a snapshot by its uuid; `NotFound` as with :func:`volume`."""
    found = snapshots(who).filter(uuid=_uuid("Snapshot", name)).first()
    if found is None:
        raise NotFound(f"Snapshot {name} could not be found.")
    return found


def image(name: str) -> Image:
    """Return an image by its uuid, whoever asks; `NotFound` if there is none."""
    found = Image.objects.filter(deleted=False, uuid=_uuid("Image", name))
    one = found.select_related("volume_type").first()
    if one is None:
        raise NotFound(f"Image {name} could not be found.")
    return one


def servers(who: Caller) -> QuerySet[Server]:
    """Return the servers that somebody can see; those that only lend are nobody's."""
    found = Server.objects.filter(deleted=False, helper=False).select_related("backend")
    return found if who.admin else found.filter(project=who.project)


def server(who: Caller, name: str) -> Server:
    """Return a server by its uuid; `NotFound` as with :func:`volume`."""
    found = servers(who).filter(uuid=_uuid("Instance", name)).first()
    if found is None:
        raise NotFound(f"Instance {name} could not be found.")
    return found


def types(who: Caller) -> QuerySet[VolumeType]:
    """Return the types that somebody can see: public ones, and their project's."""
    found = VolumeType.objects.filter(deleted=False)
    if who.admin:
        return found
    theirs = TypeAccess.objects.filter(project=who.project).values("volume_type")
    return found.filter(Q(is_public=True) | Q(pk__in=theirs))


def volume_type(who: Caller, name: str | None) -> VolumeType:
    """Return a type by its uuid or its name; without one, their project's default.

    Raises
    ------
    NotFound
        If there is none, or they cannot see it.
    """
    known = types(who)
    if not name:
        found = known.filter(default_of__project=who.project).first()
        found = found or known.filter(is_default=True).first()
        if found is None:
            raise NotFound("Default volume type can not be found.")
        return found
    try:
        found = known.filter(uuid=UUID(name)).first()
    except ValueError:
        found = None
    found = found or known.filter(name=name).first()
    if found is None:
        raise NotFound(f"Volume type {name} could not be found.")
    return found


def _uuid(what: str, name: str) -> UUID:
    try:
        return UUID(name)
    except ValueError:
        raise NotFound(f"{what} {name} could not be found.") from None
