# SPDX-License-Identifier: BSD-2-Clause
"""What there is to know of disks: list and info."""

from collections.abc import Mapping
from typing import Any

from moorage.cli import details
from moorage.cli.command import Call, Command, Example, Operand
from moorage.cli.listing import Listing
from moorage.cli.options import (
    DEBUG,
    JSON,
)
from moorage.cli.table import moment
from moorage.cli.yamlish import Flow
from moorage.units import format_size

LISTING = Listing(
    "disk",
    ("name", "uuid", "dev_type", "size", "status", "instance"),
    ("name", "uuid"),
)


_INFO = [
    "name",
    "uuid",
    "serial_no",
    "ctime",
    "mtime",
    "dev_type",
    "logical_id",
    "provider",
    "pool",
    "params",
    "sunit",
    "size",
    "mode",
    "status",
    "instance",
    "iv_name",
    "nodes",
    "last_node",
    "epoch",
    "quarantine",
    "tags",
]


def info(call: Call) -> int:
    """Print all that is known of some disks."""
    found = details.look_up(call, "disk", _INFO, LISTING.key)
    return details.show(call, found, _shown)


def _shown(disk: Mapping[str, Any]) -> dict[str, Any]:
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
        "Storage unit": "/".join((disk["sunit"] or ())[:2]),
        "Size": format_size(disk["size"]),
        "Access mode": disk["mode"],
        "State": disk["status"],
        "Attached to": f"{owner} ({disk['iv_name']})" if owner else None,
        "Nodes": _joined(disk["nodes"]),
        "Last node": disk["last_node"],
        "Epoch": disk["epoch"],
        "Quarantine": disk["quarantine"],
        "Tags": _joined(disk["tags"]) or "(none)",
    }
    seldom = (
        *("Provider", "Storage pool", "Quarantine"),
        *("Nodes", "Last node", "Storage unit"),
    )
    return {k: v for k, v in shown.items() if v or k not in seldom}


def _joined(values: Any) -> str:  # noqa: ANN401
    return values if isinstance(values, str) else ", ".join(values or ())


COMMANDS = (
    Command(
        "info",
        info,
        "Show all about disks",
        (Operand("DISK", 0, None),),
        (JSON, DEBUG),
        ("show",),
        (Example("gnt-disk info data1", "where it is, and who has it"),),
    ),
)
