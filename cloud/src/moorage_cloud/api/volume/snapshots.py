# SPDX-License-Identifier: BSD-2-Clause
"""Snapshots of volumes, and their metadata."""

from typing import Annotated, ClassVar

from django.db.models import QuerySet
from msgspec import UNSET, Struct, UnsetType, field

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import Page, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.api.wire.versions import since
from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.models import Snapshot
from moorage_cloud.verbs import caller

from .filters import as_uuid, equal, with_metadata
from .shapes import (
    CountedQuery,
    MetaBody,
    Metadata,
    MetadataBody,
    Nothing,
    ResetStatus,
    Text,
)

routes = Routes()
ALL, ONE = "/snapshots", "/snapshots/{snapshot_id}"
METADATA = ONE + "/metadata"
SORTABLE = {
    "id": "uuid",
    "name": "name",
    "display_name": "name",
    "status": "status",
    "volume_size": "size",
    "created_at": "created",
    "updated_at": "updated",
    "volume_id": "volume__uuid",
}
FORCE_IS_GONE = (3, 66)


class NewSnapshot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A snapshot that somebody wants."""

    volume_id: str
    name: Text | None = None
    description: Text | None = None
    display_name: Text | None = None
    display_description: Text | None = None
    metadata: Metadata | None = None
    force: bool | None = None


class CreateSnapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for a snapshot."""

    snapshot: NewSnapshot


class ChangedSnapshot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of a snapshot is to be different."""

    name: Text | None = None
    description: Text | None = None
    display_name: Text | None = None
    display_description: Text | None = None


class UpdateSnapshot(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to change a snapshot."""

    snapshot: ChangedSnapshot


class SnapshotShown(Struct, frozen=True, kw_only=True):
    """A snapshot."""

    id: str
    name: str
    description: str
    status: str
    size: int
    volume_id: str
    created_at: str
    updated_at: str
    metadata: dict[str, str]
    group_snapshot_id: Annotated[str | UnsetType | None, since("3.14")] = UNSET
    user_id: Annotated[str, since("3.41")]
    consumes_quota: Annotated[bool, since("3.65")] = True
    progress: str | UnsetType = field(
        name="os-extended-snapshot-attributes:progress", default=UNSET
    )
    project: str | UnsetType = field(
        name="os-extended-snapshot-attributes:project_id", default=UNSET
    )


class OneSnapshot(Struct, frozen=True):
    """A snapshot."""

    snapshot: SnapshotShown


class Snapshots(Struct, frozen=True, kw_only=True):
    """A page of snapshots."""

    snapshots: list[SnapshotShown]
    snapshots_links: list[Link] | UnsetType = UNSET
    count: Annotated[int | UnsetType, since("3.45")] = UNSET


class SnapshotsQuery(CountedQuery, frozen=True, kw_only=True):
    """Which snapshots are wanted."""

    strict_from: ClassVar[str] = "3.31"

    all_tenants: bool = False
    project_id: str | None = None
    user_id: str | None = None
    name: str | None = None
    name_like: Annotated[str | None, since("3.34")] = field(name="name~", default=None)
    status: str | None = None
    volume_id: str | None = None
    metadata: Annotated[str | None, since("3.22")] = None
    availability_zone: str | None = None
    consumes_quota: Annotated[bool | None, since("3.65")] = None


@routes("POST", ALL, rule="volume:create_snapshot", status=202)
def create_snapshot(call: Call, body: CreateSnapshot) -> OneSnapshot:
    """Take a snapshot of a volume that a server has."""
    new = body.snapshot
    if call.version >= FORCE_IS_GONE and new.force is False:
        raise BadRequest("Invalid input for field/attribute force. It is not needed")
    made = verbs.take_snapshot(
        call.who,
        call.volume(new.volume_id),
        name=new.name or new.display_name or "",
        description=new.description or new.display_description or "",
        metadata=new.metadata or {},
    )
    return OneSnapshot(_shown(call, made, detail=False))


@routes("GET", ALL, rule="volume:get_all_snapshots")
def list_snapshots(call: Call, query: SnapshotsQuery) -> Snapshots:
    """List snapshots."""
    return _page(call, query, detail=False)


@routes("GET", ALL + "/detail", rule="volume:get_all_snapshots")
def list_snapshots_in_detail(call: Call, query: SnapshotsQuery) -> Snapshots:
    """List snapshots, with what extensions tell."""
    return _page(call, query, detail=True)


@routes("GET", ONE, rule="volume:get_snapshot")
def show_snapshot(call: Call, snapshot_id: str) -> OneSnapshot:
    """Show a snapshot."""
    return OneSnapshot(_shown(call, call.snapshot(snapshot_id), detail=True))


@routes("PUT", ONE, rule="volume:update_snapshot")
def update_snapshot(call: Call, snapshot_id: str, body: UpdateSnapshot) -> OneSnapshot:
    """Change a snapshot's name or description."""
    new = body.snapshot
    changed = verbs.update_snapshot(
        call.snapshot(snapshot_id),
        name=new.name if new.name is not None else new.display_name,
        description=(
            new.description if new.description is not None else new.display_description
        ),
    )
    return OneSnapshot(_shown(call, changed, detail=False))


@routes("DELETE", ONE, rule="volume:delete_snapshot", status=202)
def delete_snapshot(call: Call, snapshot_id: str) -> None:
    """Delete a snapshot and its data."""
    verbs.delete_snapshot(call.who, call.snapshot(snapshot_id))


ADMIN = "volume_extension:snapshot_admin_actions"


@routes(
    "POST",
    ONE + "/action",
    action="os-reset_status",
    rule=f"{ADMIN}:reset_status",
    status=202,
)
def reset_status(call: Call, snapshot_id: str, body: ResetStatus) -> None:
    """Set a status that says what is so."""
    verbs.reset_snapshot(call.who, call.snapshot(snapshot_id), body.status or "")


@routes(
    "POST",
    ONE + "/action",
    action="os-force_delete",
    rule=f"{ADMIN}:force_delete",
    status=202,
)
def force_delete(call: Call, snapshot_id: str, body: Nothing) -> None:
    """Delete a snapshot, as anybody would."""
    verbs.delete_snapshot(call.who, call.snapshot(snapshot_id))


@routes("GET", METADATA, rule="volume:get_snapshot_metadata")
def list_metadata(call: Call, snapshot_id: str) -> MetadataBody:
    """Show all metadata."""
    return MetadataBody(call.snapshot(snapshot_id).metadata)


@routes("POST", METADATA, rule="volume:update_snapshot_metadata")
def add_metadata(call: Call, snapshot_id: str, body: MetadataBody) -> MetadataBody:
    """Add metadata."""
    snapshot = call.snapshot(snapshot_id)
    return MetadataBody(verbs.set_metadata(snapshot, body.metadata))


@routes("PUT", METADATA, rule="volume:update_snapshot_metadata")
def replace_metadata(call: Call, snapshot_id: str, body: MetadataBody) -> MetadataBody:
    """Replace all metadata."""
    snapshot = call.snapshot(snapshot_id)
    found = verbs.set_metadata(snapshot, body.metadata, replace=True)
    return MetadataBody(found)


@routes("GET", METADATA + "/{key}", rule="volume:get_snapshot_metadata")
def show_item(call: Call, snapshot_id: str, key: str) -> MetaBody:
    """Show an item."""
    found = call.snapshot(snapshot_id).metadata
    if key not in found:
        raise _unknown(snapshot_id, key)
    return MetaBody({key: found[key]})


@routes("PUT", METADATA + "/{key}", rule="volume:update_snapshot_metadata")
def update_item(call: Call, snapshot_id: str, key: str, body: MetaBody) -> MetaBody:
    """Set an item."""
    if list(body.meta) != [key]:
        raise BadRequest("Request body and URI mismatch")
    verbs.set_metadata(call.snapshot(snapshot_id), body.meta)
    return body


@routes("DELETE", METADATA + "/{key}", rule="volume:delete_snapshot_metadata")
def delete_item(call: Call, snapshot_id: str, key: str) -> None:
    """Remove an item."""
    if not verbs.drop_metadata(call.snapshot(snapshot_id), key):
        raise _unknown(snapshot_id, key)


def _unknown(snapshot_id: str, key: str) -> NotFound:
    return NotFound(f"Snapshot {snapshot_id} has no metadata with key {key}.")


def _page(call: Call, query: SnapshotsQuery, *, detail: bool) -> Snapshots:
    found = _found(call, query)
    page: Page = paged(found, query, call.request, SORTABLE, counted=query.counted)
    return Snapshots(
        snapshots=[_shown(call, one, detail=detail) for one in page.things],
        snapshots_links=page.links or UNSET,
        count=UNSET if page.count is None else page.count,
    )


def _found(call: Call, query: SnapshotsQuery) -> QuerySet[Snapshot]:
    who = call.who if query.all_tenants and call.who.admin else call.own
    found = caller.snapshots(who).filter(
        equal(
            name=query.name,
            name__contains=query.name_like,
            status=query.status,
            userid=query.user_id,
            project=query.project_id if who.admin else None,
        )
    )
    if query.volume_id is not None:
        found = found.filter(volume__uuid=as_uuid(query.volume_id))
    elsewhere = query.availability_zone not in {None, CONF.zone}
    if elsewhere or query.consumes_quota is False:
        return found.none()
    return with_metadata(found, query.metadata)


def _shown(call: Call, one: Snapshot, *, detail: bool) -> SnapshotShown:
    detail = detail and call.may("volume_extension:extended_snapshot_attributes")
    return SnapshotShown(
        id=str(one.uuid),
        name=one.name,
        description=one.description,
        status=one.status,
        size=one.size,
        volume_id=str(one.volume.uuid),
        created_at=moment(one.created),
        updated_at=moment(one.updated),
        metadata=one.metadata,
        group_snapshot_id=None if detail else UNSET,
        user_id=one.userid,
        progress=("0%" if one.status == "creating" else "100%") if detail else UNSET,
        project=one.project if detail else UNSET,
    )
