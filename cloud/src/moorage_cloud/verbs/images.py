# SPDX-License-Identifier: BSD-2-Clause
"""Images come and go on record: their data is put into the storage by who runs it."""

from collections.abc import Mapping

from django.db import transaction
from msgspec import Struct, field

from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest, Conflict
from moorage_cloud.models import Image, Operation, VolumeType

from .checks import check_metadata, check_size, check_text


class NewImage(Struct, frozen=True, kw_only=True):
    """An image that somebody has put into a storage.

    Attributes
    ----------
    volume_type
        A type whose storage has it.
    data
        What it is called there.
    size
        GiB, rounded up.
    """

    name: str
    volume_type: VolumeType
    data: str
    size: int
    properties: Mapping[str, str] = field(default_factory=dict)


def add_image(new: NewImage) -> Image:
    """Put an image on record.

    Raises
    ------
    BadRequest
        If it cannot be one.
    """
    check_size(new.size)
    check_text("name", new.name)
    check_metadata(new.properties)
    kind = new.volume_type
    if kind.domain is None or not kind.provider:
        raise BadRequest(
            f"an image is in a storage that clusters share: type '{kind.name}' has no "
            "domain, or no provider"
        )
    if not new.data or new.data.startswith(f"{CONF.prefix}vol-"):
        raise BadRequest(f"'{new.data}' cannot be an image: it would be a volume")
    if new.data.startswith(f"{CONF.prefix}snap-"):
        raise BadRequest(f"'{new.data}' cannot be an image: it would be a snapshot")
    if Image.objects.filter(
        backend_image_name=new.data, volume_type=kind, deleted=False
    ).exists():
        raise BadRequest(f"there is an image of '{new.data}' already")
    return Image.objects.create(
        name=new.name,
        volume_type=kind,
        backend_image_name=new.data,
        size=new.size,
        properties=dict(new.properties),
    )


def remove_image(image: Image) -> None:
    """Take an image off record; its data, and volumes made from it, stay.

    Raises
    ------
    Conflict
        If a volume is being made from it.
    """
    with transaction.atomic():
        held = Image.objects.select_for_update().get(pk=image.pk)
        copied = Operation.objects.filter(ended=None, volume__image_source=held)
        if copied.filter(data=held.backend_image_name).exists():
            raise Conflict(f"a volume is being made from image {held.uuid}")
        held.deleted = True
        held.save()
