# SPDX-License-Identifier: BSD-2-Clause
"""Volumes of servers. One is shown when the guest has the disk, and not before."""

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.models import Attachment, Server, Volume
from moorage_cloud.verbs import caller

from .shapes import (
    Attachments,
    AttachmentShown,
    AttachmentsQuery,
    CreateAttachment,
    OneAttachment,
    UpdateAttachment,
)

routes = Routes()
ALL = "/servers/{server_id}/os-volume_attachments"
ONE = ALL + "/{volume_id}"
RULE = "os_compute_api:os-volumes-attachments"
LATER = (2, 101)
"""From here on an attachment is told to be under way, by its status."""


@routes("GET", ALL, rule=f"{RULE}:index")
def list_attachments(
    call: Call, server_id: str, query: AttachmentsQuery
) -> Attachments:
    """List the volumes of a server."""
    found = _attached(call.server(server_id))
    end = None if query.limit is None else query.offset + query.limit
    return Attachments([_shown(one) for one in found[query.offset : end]])


@routes("POST", ALL, rule=f"{RULE}:create")
def attach(call: Call, server_id: str, body: CreateAttachment) -> OneAttachment:
    """Attach a volume to a server; once more, if it has it already, changes nothing."""
    server = call.server(server_id)
    wanted = body.attachment
    if wanted.tag is not None:
        raise BadRequest(
            "Attaching tagged block device is not supported for this server instance."
        )
    volume = _volume(call, server, wanted.volume_id)
    place = volume.place
    if place and place.server_id != server.pk:
        raise BadRequest(
            f"Invalid input received: Invalid volume: Volume {volume.uuid} status must "
            f"be available or downloading to reserve, but the current status is "
            f"{volume.status}."
        )
    made = verbs.attach(call.who, volume, server)
    if wanted.delete_on_termination is not None:
        verbs.update(volume, delete_on_termination=wanted.delete_on_termination)
        made.volume.delete_on_termination = wanted.delete_on_termination
    if call.version >= LATER:
        call.status = 202
    return OneAttachment(_shown(made))


@routes("GET", ONE, rule=f"{RULE}:show")
def show_attachment(call: Call, server_id: str, volume_id: str) -> OneAttachment:
    """Show a volume of a server."""
    return OneAttachment(_shown(_found(call.server(server_id), volume_id)))


@routes("PUT", ONE, rule=f"{RULE}:update", status=202)
def update_attachment(
    call: Call, server_id: str, volume_id: str, body: UpdateAttachment
) -> None:
    """Say whether a volume goes with its server."""
    place = _found(call.server(server_id), volume_id)
    wanted = body.attachment
    if wanted.volume_id != volume_id:
        raise BadRequest("another volume cannot take a volume's place here")
    if wanted.delete_on_termination is not None:
        verbs.update(place.volume, delete_on_termination=wanted.delete_on_termination)


@routes("DELETE", ONE, rule=f"{RULE}:delete", status=202)
def detach(call: Call, server_id: str, volume_id: str) -> None:
    """Take a volume from a server; once more, while it leaves, changes nothing."""
    known = call.server(server_id).attachments.select_related("volume")
    for place in known:
        if str(place.volume.uuid) == volume_id:
            verbs.detach(call.who, place.volume)
            return
    raise _unknown(volume_id)


def _volume(call: Call, server: Server, name: str) -> Volume:
    """Return a volume of a server's project: an attachment joins no two."""
    found = caller.volume(call.who, name)
    if found.project != server.project:
        raise NotFound(f"Volume {name} could not be found.")
    return found


def _attached(server: Server) -> list[Attachment]:
    found = server.attachments.exclude(attached_at=None)
    return list(found.select_related("volume", "server").order_by("index"))


def _found(server: Server, volume_id: str) -> Attachment:
    for one in _attached(server):
        if str(one.volume.uuid) == volume_id:
            return one
    raise _unknown(volume_id)


def _unknown(volume_id: str) -> NotFound:
    return NotFound(f"volume_id not found: {volume_id}")


def _shown(one: Attachment) -> AttachmentShown:
    volume = str(one.volume.uuid)
    return AttachmentShown(
        id=volume,
        server_id=str(one.server.uuid),
        volume_id=volume,
        device=one.device,
        delete_on_termination=one.volume.delete_on_termination,
        attachment_id=str(one.uuid),
        bdm_uuid=str(one.uuid),
    )
