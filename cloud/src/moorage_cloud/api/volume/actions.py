# SPDX-License-Identifier: BSD-2-Clause
"""What is done to a volume by an action."""

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.errors import BadRequest, NotFound

from .shapes import (
    Bootable,
    Extend,
    ForceDetach,
    Nothing,
    ReadOnly,
    ResetStatus,
    Retype,
    Revert,
)
from .volumes import check_deletable

routes = Routes()
ACTION = "/volumes/{volume_id}/action"
ADMIN = "volume_extension:volume_admin_actions"
EXTEND_IN_USE = (3, 42)


@routes("POST", ACTION, action="os-extend", rule="volume:extend", status=202)
def extend(call: Call, volume_id: str, body: Extend) -> None:
    """Make a volume larger."""
    volume = call.volume(volume_id)
    if volume.place:
        if call.version < EXTEND_IN_USE:
            raise BadRequest(
                f"Invalid volume: Volume {volume.uuid} status must be 'available' to "
                "extend; from 3.42 on, 'in-use' is possible, too."
            )
        call.check("volume:extend_attached_volume")
    verbs.extend(call.who, volume, body.new_size)


@routes(
    "POST", ACTION, action="os-reset_status", rule=f"{ADMIN}:reset_status", status=202
)
def reset_status(call: Call, volume_id: str, body: ResetStatus) -> None:
    """Set a status that says what is so."""
    if body.status is None:
        raise BadRequest(
            "the status alone can be set: whether a volume is attached is what is so"
        )
    verbs.reset_status(call.who, call.volume(volume_id), body.status)


@routes(
    "POST", ACTION, action="os-force_detach", rule=f"{ADMIN}:force_detach", status=202
)
def force_detach(call: Call, volume_id: str, body: ForceDetach) -> None:
    """Take a volume from its server, whatever its state says."""
    volume = call.volume(volume_id)
    place = volume.place
    named = body.attachment_id
    if named and (place is None or named not in {str(place.uuid), str(volume.uuid)}):
        raise BadRequest(f"volume {volume.uuid} has no attachment {named}")
    verbs.force_detach(call.who, volume)


@routes(
    "POST", ACTION, action="os-force_delete", rule=f"{ADMIN}:force_delete", status=202
)
def force_delete(call: Call, volume_id: str, body: Nothing) -> None:
    """Delete a volume, as anybody would: there is no way past its data."""
    volume = call.volume(volume_id)
    check_deletable(volume)
    verbs.delete(call.who, volume)


@routes("POST", ACTION, action="os-retype", rule="volume:retype", status=202)
def retype(call: Call, volume_id: str, body: Retype) -> None:
    """Give a volume another type; its data stays where it is."""
    volume = call.volume(volume_id)
    try:
        kind = call.volume_type(body.new_type)
    except NotFound as error:
        raise BadRequest(error.sentence) from None
    verbs.retype(call.who, volume, kind)


@routes(
    "POST",
    ACTION,
    action="revert",
    rule="volume:revert_to_snapshot",
    low="3.40",
    status=202,
)
def revert(call: Call, volume_id: str, body: Revert) -> None:
    """Refuse to put the data of a snapshot back in place: no storage here can."""
    volume = call.volume(volume_id)
    raise BadRequest(
        f"Invalid volume: no storage puts the data of snapshot {body.snapshot_id} back "
        f"in the place of volume {volume.uuid}: make a volume from the snapshot, and "
        "attach that instead"
    )


@routes("POST", ACTION, action="os-set_bootable", rule="volume:update")
def set_bootable(call: Call, volume_id: str, body: Bootable) -> None:
    """Say whether a guest can start from it."""
    verbs.update(call.volume(volume_id), bootable=body.bootable)


@routes(
    "POST",
    ACTION,
    action="os-update_readonly_flag",
    rule="volume:update_readonly_flag",
    status=202,
)
def set_read_only(call: Call, volume_id: str, body: ReadOnly) -> None:
    """Say whether guests may only read a volume that none has."""
    verbs.update(call.volume(volume_id), read_only=body.readonly)
