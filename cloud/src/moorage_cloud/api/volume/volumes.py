# SPDX-License-Identifier: BSD-2-Clause
"""Volumes: made, looked at, changed, deleted."""

from collections import defaultdict

from django.db.models import Count, QuerySet, Sum
from msgspec import UNSET

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.pages import Page, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.life import Status
from moorage_cloud.models import Server, Volume, VolumeType
from moorage_cloud.verbs import caller
from moorage_cloud.verbs.asking import Stored

from .filters import between, equal, with_metadata
from .shapes import (
    BriefVolumes,
    ChangedVolume,
    CreateVolume,
    DeleteQuery,
    NewVolume,
    OneVolume,
    Shown,
    Summary,
    Total,
    UpdateVolume,
    Volumes,
    VolumesQuery,
)
from .shown import DETAIL, View

routes = Routes()
VOLUMES, VOLUME = "/volumes", "/volumes/{volume_id}"
SORTABLE = {
    "id": "uuid",
    "name": "name",
    "display_name": "name",
    "status": "status",
    "size": "size",
    "created_at": "created",
    "updated_at": "updated",
    "bootable": "bootable",
    "availability_zone": "created",  # all are in one
    "volume_type_id": "volume_type",
}


@routes("POST", VOLUMES, rule="volume:create", status=202)
def create_volume(call: Call, body: CreateVolume, query: Shown) -> OneVolume:
    """Make a volume."""
    new = body.volume
    _check_possible(new)
    original = _original(call, new)
    size = new.size or (original.size if original else None)
    if size is None:
        raise BadRequest("Invalid input for field/attribute size: it is missing")
    made = verbs.create(
        call.who,
        verbs.NewVolume(
            size=size,
            volume_type=_type(call, new.volume_type, original),
            name=new.name or new.display_name or "",
            description=new.description or new.display_description or "",
            metadata=new.metadata or {},
            server=_server(call, new.server_id),
            original=original,
        ),
    )
    view = View(call, extended=query.extended, tenant=False)
    return OneVolume(view.detail(made))


def _check_possible(new: NewVolume) -> None:
    """Refuse what no volume here can be."""
    if new.availability_zone not in {None, "", CONF.zone}:
        raise BadRequest(f"Availability zone '{new.availability_zone}' is invalid.")
    if new.multiattach:
        raise BadRequest(
            "a volume is for one server at a time: multiattach is not here"
        )
    sources = {
        "a group": new.group_id or new.consistencygroup_id,
        "a backup": new.backup_id,
    }
    for what, given in sources.items():
        if given:
            raise BadRequest(f"a volume cannot be made from {what} here")


def _original(call: Call, new: NewVolume) -> Stored | None:
    """Return what a volume is to be a copy of; None for nothing."""
    image = new.imageRef or new.image_id
    if sum(map(bool, (new.snapshot_id, new.source_volid, image))) > 1:
        raise BadRequest(
            "May specify only one of snapshot, imageRef or source volume: a volume has "
            "one original"
        )
    if new.snapshot_id:
        return caller.snapshot(call.who, new.snapshot_id)
    if new.source_volid:
        return caller.volume(call.who, new.source_volid)
    return caller.image(image) if image else None


def _type(call: Call, name: str | None, original: Stored | None) -> VolumeType:
    if original and not name:
        return original.volume_type
    try:
        return call.volume_type(name)
    except NotFound as error:
        if name:
            raise
        raise BadRequest(error.sentence) from None


def _server(call: Call, name: str | None) -> Server | None:
    if not name:
        return None
    try:
        return caller.server(call.own, name)
    except NotFound as error:
        raise BadRequest(error.sentence) from None


@routes("GET", VOLUMES, rule="volume:get_all")
def list_volumes(call: Call, query: VolumesQuery) -> BriefVolumes:
    """List volumes, by name."""
    page, view = _page(call, query), View(call)
    return BriefVolumes(
        volumes=[view.brief(one) for one in page.things],
        volumes_links=page.links or UNSET,
        count=UNSET if page.count is None else page.count,
    )


@routes("GET", VOLUMES + "/detail", rule="volume:get_all")
def list_volumes_in_detail(call: Call, query: VolumesQuery) -> Volumes:
    """List volumes."""
    page, view = _page(call, query), View(call, extended=query.extended)
    return Volumes(
        volumes=[view.detail(one) for one in page.things],
        volumes_links=page.links or UNSET,
        count=UNSET if page.count is None else page.count,
    )


@routes("GET", VOLUMES + "/summary", rule="volume:get_all", low="3.12")
def summarize(call: Call, query: VolumesQuery) -> Summary:
    """Tell how many volumes there are, how large, and with which metadata."""
    found = _found(call, query).order_by()
    metadata: dict[str, set[str]] = defaultdict(set)
    for items in found.values_list("metadata", flat=True).distinct():
        for key, value in items.items():
            metadata[key].add(value)
    total = found.aggregate(number=Count("pk"), size=Sum("size"))
    return Summary(
        Total(
            total["number"],
            total["size"] or 0,
            {key: sorted(values) for key, values in sorted(metadata.items())},
        )
    )


@routes("GET", VOLUME, rule="volume:get")
def show_volume(call: Call, volume_id: str, query: Shown) -> OneVolume:
    """Show a volume."""
    return OneVolume(View(call, extended=query.extended).detail(call.volume(volume_id)))


@routes("PUT", VOLUME, rule="volume:update")
def update_volume(call: Call, volume_id: str, body: UpdateVolume) -> OneVolume:
    """Change a volume's name, description or metadata."""
    new, volume = body.volume, call.volume(volume_id)
    if new == ChangedVolume() and call.version >= (3, 53):
        raise BadRequest("Invalid input for field/attribute volume: nothing is given")
    if new.metadata is not None:
        verbs.set_metadata(volume, new.metadata)
    verbs.update(
        volume,
        name=new.name if new.name is not None else new.display_name,
        description=(
            new.description if new.description is not None else new.display_description
        ),
    )
    return OneVolume(View(call, tenant=False).detail(call.volume(volume_id)))


@routes("DELETE", VOLUME, rule="volume:delete", status=202)
def delete_volume(call: Call, volume_id: str, query: DeleteQuery) -> None:
    """Delete a volume that no server has."""
    volume = call.volume(volume_id)
    if query.force:
        call.check("volume:force_delete")
    check_deletable(volume)
    verbs.delete(call.who, volume)


def check_deletable(volume: Volume) -> None:
    """Refuse a volume that a server has, with the name of that."""
    if volume.place and volume.status != Status.DELETING:
        server = volume.place.server
        raise BadRequest(
            "Invalid volume: Volume status must be available or error or "
            "error_restoring or error_extending or error_managing and must not be "
            "migrating, attached, belong to a group, have snapshots, awaiting a "
            "transfer, or be disassociated from snapshots after volume transfer: it "
            f"is '{volume.status}' and server {server.name} ({server.uuid}) has it."
        )


def _page(call: Call, query: VolumesQuery) -> Page:
    found = _found(call, query)
    return paged(found, query, call.request, SORTABLE, counted=query.counted)


def _found(call: Call, query: VolumesQuery) -> QuerySet[Volume]:
    who = call.who if query.all_tenants and call.who.admin else call.own
    # Of types and clusters there are few: they are not read once more for each volume.
    found = (
        caller.volumes(who).select_related(None).select_related("attachment__server")
    )
    found = found.prefetch_related(*DETAIL)
    found = found.filter(
        equal(
            name=query.name,
            name__contains=query.name_like,
            status=query.status,
            status__contains=query.status_like,
            bootable=query.bootable,
            size=query.size,
            userid=query.user_id,
            project=query.project_id if who.admin else None,
        ),
        between("created", query.created_at),
        between("updated", query.updated_at),
    )
    if query.volume_type_id is not None:
        found = found.filter(volume_type__in=_types(call, query.volume_type_id))
    none = (
        query.availability_zone not in {None, CONF.zone}
        or query.migration_status is not None
        or query.group_id is not None
        or query.consumes_quota is False
    )
    if none:
        return found.none()
    found = with_metadata(found, query.glance_metadata, "image_metadata")
    return with_metadata(found, query.metadata)


def _types(call: Call, name: str) -> list[VolumeType]:
    try:
        return [call.volume_type(name)]
    except NotFound:
        return []
