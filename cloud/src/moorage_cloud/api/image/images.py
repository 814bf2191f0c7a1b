# SPDX-License-Identifier: BSD-2-Clause
"""Images: listed and shown. Administrators make them by commands."""

from typing import Annotated

from django.db.models import QuerySet
from msgspec import UNSET, Meta, Struct, UnsetType

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.models import Image
from moorage_cloud.verbs import caller

routes = Routes()
ALL, ONE = "/images", "/images/{image_id}"
MOST = 1000
"""Images on a page, at most."""


class ImageShown(Struct, frozen=True, kw_only=True):
    """An image; `size` is in bytes, `min_disk` in GiB."""

    id: str
    name: str
    status: str = "active"
    visibility: str = "public"
    protected: bool = True
    owner: str | None = None
    checksum: str | None = None
    size: int
    virtual_size: int
    container_format: str = "bare"
    disk_format: str = "raw"
    min_disk: int
    min_ram: int = 0
    os_hidden: bool = False
    tags: tuple[str, ...] = ()
    created_at: str
    updated_at: str
    self: str
    schema: str = "/v2/schemas/image"


class Images(Struct, frozen=True, kw_only=True):
    """A page of images."""

    images: list[ImageShown]
    first: str = "/v2/images"
    next: str | UnsetType = UNSET
    schema: str = "/v2/schemas/images"


class ImagesQuery(Struct, frozen=True, kw_only=True):
    """Which images are wanted; behind `marker`, at most `limit`."""

    name: str | None = None
    status: str | None = None
    visibility: str | None = None
    owner: str | None = None
    os_hidden: bool = False
    limit: Annotated[int, Meta(ge=0)] = MOST
    marker: str | None = None


@routes("GET", ALL, rule="get_images")
def list_images(call: Call, query: ImagesQuery) -> Images:
    """List images, the newest first."""
    del call
    found, size = _found(query), min(query.limit, MOST)
    page = list(found[: size + 1])
    more = len(page) > size > 0
    return Images(
        images=[_shown(one) for one in page[:size]],
        next=f"/v2/images?marker={page[size - 1].uuid}" if more else UNSET,
    )


@routes("GET", ONE, rule="get_image")
def show_image(call: Call, image_id: str) -> ImageShown:
    """Show an image."""
    del call
    return _shown(caller.image(image_id))


def _found(query: ImagesQuery) -> QuerySet[Image]:
    found = Image.objects.filter(deleted=False).order_by("-pk")
    if query.name is not None:
        found = found.filter(name=query.name)
    if query.marker:
        found = found.filter(pk__lt=caller.image(query.marker).pk)
    usual = {"status": "active", "visibility": "public"}
    for name, value in usual.items():
        asked = getattr(query, name)
        if asked not in {None, value, "all"}:
            return found.none()
    return found.none() if query.owner or query.os_hidden else found


def _shown(one: Image) -> ImageShown:
    key = str(one.uuid)
    return ImageShown(
        id=key,
        name=one.name,
        size=one.size << 30,
        virtual_size=one.size << 30,
        min_disk=one.size,
        created_at=moment(one.created),
        updated_at=moment(one.updated),
        self=f"/v2/images/{key}",
    )
