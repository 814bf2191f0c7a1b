# SPDX-License-Identifier: BSD-2-Clause
"""Disks, as objects of their own; not in Ganeti."""

from typing import Any

from moorage.api.rapi.looking import BULK, COMMON, Do, Listed, Single, get, one
from moorage.api.rapi.making import make
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Asked, Route
from moorage.units import is_whole

from .tagging import tags

_FIELDS = (
    *("name", "size", "mode", "dev_type", "provider", "pool", "params", "presets"),
    "volume",
    *("sunit", "status", "instance", "iv_name", "node", "nodes", "last_node", "behind"),
    *("group", "epoch", "quarantine", "unproven", "adopted", "spindles", *COMMON),
)
_DISK = "/2/disks/{disk}"


async def _story(asked: Asked) -> dict[str, Any]:
    found: dict[str, Any] = await asked.luxi.call("QueryDiskStory", asked.path["disk"])
    return found


async def _snapshots(asked: Asked) -> int:
    """Take snapshots of disks of an instance, by one job.

    A disk goes by its index, its name or its uuid.
    """
    wishes = asked.fields().get("disks")
    if not isinstance(wishes, list) or not wishes:
        raise HttpError(400, "The 'disks' parameter should be a list of pairs")
    name = asked.path["instance_name"]
    (uuids,) = await one(asked, "instance", ["disk.uuids"], name)
    ops = [_snapshot(wish, uuids) for wish in wishes]
    return await asked.submit(*ops)


def _snapshot(wish: Any, uuids: list[str]) -> dict[str, Any]:  # noqa: ANN401
    match wish:
        case [int() | str() as disk, {"snapshot_name": str() as new_name}]:
            text = str(disk)
            if is_whole(text):
                if not 0 <= int(text) < len(uuids):
                    raise HttpError(404, f"there is no disk {text}")
                text = uuids[int(text)]
            return {"OP_ID": "OP_DISK_SNAPSHOT", "disk": text, "new_name": new_name}
        case _:
            raise HttpError(400, "a snapshot is [disk, {'snapshot_name': text}]")


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/2/disks",
        "List the disks",
        Listed("disk", _FIELDS, "/2/disks", "uuid"),
        Role.KNOWN,
        (BULK,),
    ),
    make("POST", "/2/disks", "OP_DISK_ADD"),
    make("POST", "/2/disks/adopt", "OP_DISK_ADOPT"),
    Route("GET", _DISK, "Tell about a disk", Single("disk", _FIELDS), Role.KNOWN),
    make("DELETE", _DISK, "OP_DISK_REMOVE"),
    make("PUT", f"{_DISK}/attach", "OP_DISK_ATTACH"),
    make("PUT", f"{_DISK}/detach", "OP_DISK_DETACH"),
    make("POST", f"{_DISK}/grow", "OP_DISK_GROW"),
    make("POST", f"{_DISK}/snapshot", "OP_DISK_SNAPSHOT"),
    make("POST", f"{_DISK}/clone", "OP_DISK_CLONE"),
    make("POST", f"{_DISK}/convert", "OP_DISK_CONVERT"),
    make("PUT", f"{_DISK}/rename", "OP_DISK_RENAME"),
    make("PUT", f"{_DISK}/modify", "OP_DISK_SET_PARAMS"),
    make("POST", f"{_DISK}/forget", "OP_DISK_FORGET"),
    get(
        f"{_DISK}/story",
        "Tell what happened to a disk, also to one that is gone",
        _story,
        answer=dict[str, Any],
        role=Role.READ,
    ),
    *tags(_DISK, "disk"),
    Route(
        "PUT",
        "/2/instances/{instance_name}/snapshot",
        "Take snapshots of disks of an instance",
        Do(
            _snapshots,
            int,
            {"disks": 'pairs of a disk and `{"snapshot_name": TEXT}`; required'},
        ),
        Role.WRITE,
    ),
)
