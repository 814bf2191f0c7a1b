# SPDX-License-Identifier: BSD-2-Clause
"""A volume comes to be: on record and counted; no cluster is asked for anything."""

from collections.abc import Mapping

from django.db import transaction
from msgspec import Struct, field

from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest
from moorage_cloud.life import Status
from moorage_cloud.models import Server, Volume, VolumeType

from .attach import attach_new, check_detachable
from .caller import Caller
from .quota import charge

MAX_METADATA = 10
MAX_KEY = 64
MAX_TEXT = 255


class NewVolume(Struct, frozen=True, kw_only=True):
    """What somebody wants.

    Attributes
    ----------
    size
        GiB.
    server
        One that it is attached to at once; None for none.
    """

    size: int
    volume_type: VolumeType
    name: str = ""
    description: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    server: Server | None = None
    delete_on_termination: bool = False
    bootable: bool = False


def create(who: Caller, new: NewVolume) -> Volume:
    """Make a volume; with a server it is attached to that as well.

    Raises
    ------
    BadRequest
        If something of it cannot be.
    OverLimit
        If the project's quota does not allow it.
    """
    check_size(new.size)
    check_text("name", new.name)
    check_text("description", new.description)
    check_metadata(new.metadata)
    if new.server is None:
        check_detachable(new.volume_type)
    with transaction.atomic():
        if new.server:  # held before the quota is, as all do who hold both
            Server.objects.select_for_update().get(pk=new.server.pk)
        charge(who.project, new.volume_type.name, volumes=1, gigabytes=new.size)
        volume = Volume.objects.create(
            name=new.name,
            description=new.description,
            userid=who.user,
            project=who.project,
            size=new.size,
            volume_type=new.volume_type,
            metadata=dict(new.metadata),
            delete_on_termination=new.delete_on_termination,
            bootable=new.bootable,
            status=Status.CREATING if new.server else Status.AVAILABLE,
        )
        if new.server:
            attach_new(who, volume, new.server)
    return volume


def check_size(size: object) -> None:
    """Refuse what is no size of a volume, GiB."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise BadRequest(f"the size of a volume is a whole number of GiB, not '{size}'")
    if size > CONF.max_volume_size:
        raise BadRequest(
            f"a volume has at most {CONF.max_volume_size} GiB, not {size} GiB"
        )


def check_text(what: str, text: str) -> None:
    """Refuse a text that is too long."""
    if len(text) > MAX_TEXT:
        raise BadRequest(
            f"{what} has {len(text)} characters, more than {MAX_TEXT} are not possible"
        )


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Refuse metadata that is too much."""
    if len(metadata) > MAX_METADATA:
        raise BadRequest(
            f"a volume has at most {MAX_METADATA} items of metadata, not "
            f"{len(metadata)}"
        )
    for key, value in metadata.items():
        if not 1 <= len(key) <= MAX_KEY:
            raise BadRequest(
                f"a key of metadata has 1 to {MAX_KEY} characters: '{key}'"
            )
        if len(value) > MAX_TEXT:
            raise BadRequest(
                f"the value of '{key}' has more than {MAX_TEXT} characters"
            )
