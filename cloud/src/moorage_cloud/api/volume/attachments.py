# SPDX-License-Identifier: BSD-2-Clause
"""Attachments, 3.27: looked at here; made and ended with the server, by compute.

An attachment that ended behind a server's back would leave a guest with a disk that
another one could get: two could write to it. So that is refused.
"""

from typing import Annotated, Any, ClassVar

from django.db.models import QuerySet
from msgspec import UNSET, Struct, UnsetType

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import Page, PageQuery, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.api.wire.versions import since
from moorage_cloud.errors import BadRequest, Conflict, NotFound
from moorage_cloud.models import Attachment
from moorage_cloud.verbs import caller

from .filters import as_uuid
from .shapes import Nothing

routes = Routes()
ALL, ONE = "/attachments", "/attachments/{attachment_id}"
LOW = "3.27"
SORTABLE = {"id": "uuid", "created_at": "pk", "attach_time": "attached_at"}


class NewAttachment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume that is to be attached to a server; connectors are for others' hosts."""

    volume_uuid: str
    instance_uuid: str | None = None
    connector: dict[str, Any] | None = None
    mode: Annotated[str | None, since("3.54")] = None


class CreateAttachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for an attachment."""

    attachment: NewAttachment


class AttachmentBrief(Struct, frozen=True, kw_only=True):
    """An attachment in a list without detail."""

    id: str
    status: str
    instance: str
    volume_id: str


class AttachmentShown(Struct, frozen=True, kw_only=True):
    """An attachment."""

    id: str
    status: str
    instance: str
    volume_id: str
    attached_at: str
    detached_at: str = ""
    attach_mode: str
    connection_info: dict[str, str] = {}


class OneAttachment(Struct, frozen=True):
    """An attachment."""

    attachment: AttachmentShown


class BriefAttachments(Struct, frozen=True, kw_only=True):
    """A page of attachments, without detail."""

    attachments: list[AttachmentBrief]
    attachments_links: list[Link] | UnsetType = UNSET


class Attachments(Struct, frozen=True, kw_only=True):
    """A page of attachments."""

    attachments: list[AttachmentShown]
    attachments_links: list[Link] | UnsetType = UNSET


class AttachmentsQuery(PageQuery, frozen=True, kw_only=True):
    """Which attachments are wanted."""

    strict_from: ClassVar[str] = "3.31"

    all_tenants: bool = False
    project_id: str | None = None
    volume_id: str | None = None
    instance_id: str | None = None
    status: str | None = None
    attach_status: str | None = None


@routes("GET", ALL, low=LOW, rule="volume:get_all")
def list_attachments(call: Call, query: AttachmentsQuery) -> BriefAttachments:
    """List attachments, by what they join."""
    page = _page(call, query)
    return BriefAttachments(
        attachments=[
            AttachmentBrief(
                id=str(one.uuid),
                status="attached",
                instance=str(one.server.uuid),
                volume_id=str(one.volume.uuid),
            )
            for one in page.things
        ],
        attachments_links=page.links or UNSET,
    )


@routes("GET", ALL + "/detail", low=LOW, rule="volume:get_all")
def list_attachments_in_detail(call: Call, query: AttachmentsQuery) -> Attachments:
    """List attachments."""
    page = _page(call, query)
    return Attachments(
        attachments=[_shown(one) for one in page.things],
        attachments_links=page.links or UNSET,
    )


@routes("GET", ONE, low=LOW, rule="volume:get")
def show_attachment(call: Call, attachment_id: str) -> OneAttachment:
    """Show an attachment."""
    return OneAttachment(_shown(_found(call, attachment_id)))


@routes("POST", ALL, low=LOW, rule="volume:attachment_create")
def create_attachment(call: Call, body: CreateAttachment) -> OneAttachment:
    """Attach a volume to a server, as compute does."""
    new = body.attachment
    if new.connector:
        raise BadRequest(
            "a volume is for servers of this cloud: connectors are not here"
        )
    if not new.instance_uuid:
        raise BadRequest("an attachment names its server: instance_uuid is missing")
    if new.mode == "ro":
        raise BadRequest(
            "a volume is read-only for all: os-update_readonly_flag says so"
        )
    volume = call.volume(new.volume_uuid)
    server = caller.server(call.who, new.instance_uuid)
    if server.project != volume.project:
        raise NotFound(f"Instance {new.instance_uuid} could not be found.")
    return OneAttachment(_shown(verbs.attach(call.who, volume, server)))


@routes("DELETE", ONE, low=LOW, rule="volume:attachment_delete")
def delete_attachment(call: Call, attachment_id: str) -> None:
    """Refuse: a server has the volume, and compute takes it off."""
    found = _found(call, attachment_id)
    raise Conflict(
        f"ConflictNovaUsingAttachment: Detach volume from instance {found.server.uuid} "
        "using the Compute API"
    )


@routes(
    "POST",
    ONE + "/action",
    action="os-complete",
    low="3.44",
    status=204,
    rule="volume:attachment_complete",
)
def complete_attachment(call: Call, attachment_id: str, body: Nothing) -> None:
    """Succeed: one that is shown is complete."""
    _found(call, attachment_id)


def _page(call: Call, query: AttachmentsQuery) -> Page:
    who = call.who if query.all_tenants and call.who.admin else call.own
    found = _seen(who)
    if query.project_id is not None and who.admin:
        found = found.filter(volume__project=query.project_id)
    if query.volume_id is not None:
        found = found.filter(volume__uuid=as_uuid(query.volume_id))
    if query.instance_id is not None:
        found = found.filter(server__uuid=as_uuid(query.instance_id))
    if {query.status, query.attach_status} - {None, "attached"}:
        found = found.none()
    return paged(found, query, call.request, SORTABLE)


def _seen(who: verbs.Caller) -> QuerySet[Attachment]:
    """Return attachments that somebody can see: those that the guest has."""
    found = Attachment.objects.exclude(attached_at=None)
    found = found.select_related("volume", "server").filter(server__helper=False)
    return found if who.admin else found.filter(volume__project=who.project)


def _found(call: Call, attachment_id: str) -> Attachment:
    one = _seen(call.who).filter(uuid=as_uuid(attachment_id)).first()
    if one is None:
        raise NotFound(f"Volume attachment {attachment_id} could not be found.")
    owner = {"project_id": one.volume.project, "user_id": one.volume.userid}
    call.check(call.rule, owner)
    return one


def _shown(one: Attachment) -> AttachmentShown:
    return AttachmentShown(
        id=str(one.uuid),
        status="attached" if one.attached_at else "attaching",
        instance=str(one.server.uuid),
        volume_id=str(one.volume.uuid),
        attached_at=moment(one.attached_at) if one.attached_at else "",
        attach_mode="ro" if one.volume.read_only else "rw",
    )
