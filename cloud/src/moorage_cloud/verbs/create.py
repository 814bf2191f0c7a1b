# SPDX-License-Identifier: BSD-2-Clause
"""A volume comes to be: on record and counted.

No cluster is asked for anything, unless it is a copy: that is made at once.
"""

from collections.abc import Mapping

from django.db import transaction
from msgspec import Struct, field

from moorage_cloud.errors import BadRequest
from moorage_cloud.life import Status
from moorage_cloud.models import Image, Server, Snapshot, Volume, VolumeType

from .asking import Stored, has_data
from .attach import attach_new, check_detachable
from .caller import Caller
from .checks import check_metadata, check_size, check_text
from .copies import begin_copy, check_fits, holding_original
from .quota import charge
from .story import What, tell


class NewVolume(Struct, frozen=True, kw_only=True):
    """What somebody wants.

    Attributes
    ----------
    size
        GiB.
    server
        One that it is attached to at once; None for none.
    original
        What it is to be a copy of; None for nothing.
    """

    size: int
    volume_type: VolumeType
    name: str = ""
    description: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    server: Server | None = None
    delete_on_termination: bool = False
    bootable: bool = False
    original: Stored | None = None


def create(who: Caller, new: NewVolume) -> Volume:
    """Make a volume; with a server it is attached to that as well.

    Raises
    ------
    BadRequest
        If something of it cannot be.
    OverLimit
        If the project's quota does not allow it.
    Unavailable
        If no cluster can copy the original now.
    """
    check_size(new.size)
    check_text("name", new.name)
    check_text("description", new.description)
    check_metadata(new.metadata)
    if new.server is None:
        check_detachable(new.volume_type)
    if new.original is None:
        with transaction.atomic():
            if new.server:  # held before the quota is, as all do who hold both
                Server.objects.select_for_update().get(pk=new.server.pk)
            volume = _made(who, new)
            if new.server:
                attach_new(who, volume, new.server)
        return volume
    if new.server:
        raise BadRequest(
            "a volume that is a copy is attached when its data is there: make it "
            "without a server"
        )
    with holding_original(new.original) as held:
        check_fits(held, new.volume_type, new.size)
        volume = _made(who, new, _told_of(held))
        if volume.uncopied:
            begin_copy(who, volume, held)
    return volume


def _made(
    who: Caller, new: NewVolume, original: Mapping[str, object] | None = None
) -> Volume:
    """Count a volume, and put it on record."""
    charge(who.project, new.volume_type.name, volumes=1, gigabytes=new.size)
    fields = {"bootable": new.bootable, "uncopied": False, **(original or {})}
    begins = new.server or fields["uncopied"]
    made = Volume.objects.create(
        name=new.name,
        description=new.description,
        userid=who.user,
        project=who.project,
        size=new.size,
        volume_type=new.volume_type,
        metadata=dict(new.metadata),
        delete_on_termination=new.delete_on_termination,
        status=Status.CREATING if begins else Status.AVAILABLE,
        **fields,
    )
    tell(made, What.CREATE, who)
    return made


def _told_of(stored: Stored) -> dict[str, object]:
    """Return what is on record of a copy because of its original."""
    copied = {"uncopied": has_data(stored)}
    match stored:
        case Image():
            told = {"bootable": True, "image_metadata": stored.metadata}
            return {"image_source": stored, **told, **copied}
        case Snapshot():
            return {"snapshot_source": stored, **_boots_as(stored.volume), **copied}
        case Volume():
            return {"volume_source": stored, **_boots_as(stored), **copied}


def _boots_as(volume: Volume) -> dict[str, object]:
    return {"bootable": volume.bootable, "image_metadata": volume.image_metadata}
