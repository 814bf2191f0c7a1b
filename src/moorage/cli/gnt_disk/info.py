# SPDX-License-Identifier: BSD-2-Clause
"""What there is to know of disks: list and info."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand
from moorage.cli.follow import fetch
from moorage.cli.gnt_instance.info import device
from moorage.cli.listing import Listing
from moorage.cli.options import DEBUG, JSON
from moorage.cli.table import moment
from moorage.cli.yamlish import Flow, lines
from moorage.units import format_size

LISTING = Listing(
    "disk", ("name", "uuid", "dev_type", "size", "status", "instance"), ("name", "uuid")
)


_INFO = (
    *("name", "uuid", "serial_no", "ctime", "mtime", "dev_type", "logical_id"),
    *("provider", "pool", "params", "presets", "sunit", "size", "mode", "status"),
    *("instance", "iv_name", "nodes", "last_node", "epoch", "quarantine", "behind"),
    *("tags", "unproven", "adopted", "spindles"),
)


def _info(call: Call) -> None:
    found = call.look_up("disk", _INFO, LISTING.key)
    live = {} if call.option("json") else _live(call, found)
    shown = [_shown(one, live.get(one["uuid"])) for one in found]
    call.show(found, lines(shown))


def _live(call: Call, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what nodes say of the mirrored disks that instances have, by uuid."""
    owners = {d["instance"] for d in found if len(d["nodes"] or ()) > 1} - {None}
    if not owners:
        return {}
    told = fetch(call, "OP_INSTANCE_QUERY_DATA", instances=sorted(owners))
    return {disk["uuid"]: disk for one in told.values() for disk in one["disks"]}


def _shown(disk: Mapping[str, Any], live: Mapping[str, Any] | None) -> dict[str, Any]:
    owner = disk["instance"] if disk["status"] == "attached" else None
    shown = {
        "Disk name": disk["name"],
        "UUID": disk["uuid"],
        "Serial number": disk["serial_no"],
        "Creation time": moment(disk["ctime"]),
        "Modification time": moment(disk["mtime"]),
        "Template": disk["dev_type"],
        "logical_id": Flow(disk["logical_id"] or ()),
        "Provider": disk["provider"],
        "Storage pool": disk["pool"],
        "Parameters": disk["params"] or "(none)",
        "Presets": disk["presets"],
        "Storage unit": "/".join((disk["sunit"] or ())[:2]),
        "Size": format_size(disk["size"]),
        "Spindles": disk["spindles"],
        "Access mode": disk["mode"],
        "State": disk["status"],
        "Attached to": f"{owner} ({disk['iv_name']})" if owner else None,
        "Nodes": _joined(disk["nodes"]),
        "Last node": disk["last_node"],
        "Epoch": disk["epoch"],
        "Quarantine": disk["quarantine"],
        "Adopted": "yes, its volume was there before it" if disk["adopted"] else None,
        "Missed writes": disk["behind"],
        **(_copies(live) if live else {}),
        "Tags": _joined(disk["tags"]) or "(none)",
    }
    seldom = (
        *("Provider", "Storage pool", "Quarantine"),
        *("Nodes", "Last node", "Storage unit", "Missed writes"),
        *("Adopted", "Spindles", "Presets"),
    )
    return {k: v for k, v in shown.items() if v or k not in seldom}


def _copies(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return how both copies are, and the volumes that each is made of."""
    return {
        "On primary": device(live["held"] or {}),
        "On secondary": device(live["copy"] or {}),
        "Child devices": [
            f"{format_size(one['size'])} {'/'.join(one['logical_id'])}"
            for one in live["children"]
        ],
    }


def _joined(values: Any) -> str:  # noqa: ANN401
    return values if isinstance(values, str) else ", ".join(values or ())


COMMANDS = (
    *LISTING.commands("gnt-disk", 'status == "detached"'),
    Command(
        "info",
        _info,
        (Operand("DISK", 0, None),),
        (JSON, DEBUG),
        {"gnt-disk info data1": "where it is, and who has it"},
    ),
)
