# SPDX-License-Identifier: BSD-2-Clause
"""What a command's words name: by number, as the administrator knows things."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.identity import people
from moorage_cloud.identity.models import Project, User
from moorage_cloud.models import (
    Backend,
    Image,
    Server,
    Snapshot,
    StorageDomain,
    Volume,
    VolumeType,
)
from moorage_cloud.verbs.asking import Stored

M = TypeVar("M", bound=Model)


def backend(name: str) -> Backend:
    """Return a cluster by its number or its name."""
    if name.isdecimal():
        return _one(Backend.objects.filter(pk=int(name)), "backend", name)
    return _one(Backend.objects.filter(clustername=name), "backend", name)


def volume(name: str) -> Volume:
    """Return a volume by its number or its uuid; those that are gone, too."""
    known = Volume.objects.select_related("volume_type", "attachment__server__backend")
    return _one(_by_number_or_uuid(known, name), "volume", name)


def snapshot(name: str) -> Snapshot:
    """Return a snapshot by its number or its uuid; those that are gone, too."""
    known = Snapshot.objects.select_related("volume__volume_type")
    return _one(_by_number_or_uuid(known, name), "snapshot", name)


def image(name: str) -> Image:
    """Return an image by its number or its uuid."""
    known = Image.objects.filter(deleted=False).select_related("volume_type")
    return _one(_by_number_or_uuid(known, name), "image", name)


def original(text: str) -> Stored:
    """Return what a volume is to be a copy of, by ``snapshot:NUMBER`` and the like."""
    kind, _, name = text.partition(":")
    match kind:
        case "snapshot":
            return snapshot(name)
        case "volume":
            return volume(name)
        case "image":
            return image(name)
    raise BadRequest(f"a source is snapshot:ID, volume:ID or image:ID, not '{text}'")


def server(name: str) -> Server:
    """Return a server by its number or its uuid."""
    known = Server.objects.filter(deleted=False).select_related("backend")
    return _one(_by_number_or_uuid(known, name), "server", name)


def volume_type(name: str) -> VolumeType:
    """Return a type by its number or its name."""
    known = VolumeType.objects.filter(deleted=False)
    if name.isdecimal():
        return _one(known.filter(pk=int(name)), "volume type", name)
    return _one(known.filter(name=name), "volume type", name)


def domain(name: str) -> StorageDomain:
    """Return a storage domain by its name."""
    return _one(StorageDomain.objects.filter(name=name), "storage domain", name)


def project(name: str) -> str:
    """Return the id of a project by its id or its name.

    Where there is no project at all, people are known elsewhere, and a word is its own
    id. Without a word it is nobody's.
    """
    return people.project(name).pk if name and Project.objects.exists() else name


def user(name: str) -> str:
    """Return the id of a user, as :func:`project` does that of a project."""
    return people.user(name).pk if name and User.objects.exists() else name


def _by_number_or_uuid(known: "QuerySet[M]", name: str) -> "QuerySet[M]":
    if name.isdecimal():
        return known.filter(pk=int(name))
    try:
        return known.filter(uuid=UUID(name))
    except ValueError:
        return known.none()


def _one(found: "QuerySet[M]", what: str, name: str) -> M:
    one = found.first()
    if one is None:
        raise NotFound(f"there is no {what} '{name}'")
    return one
