# SPDX-License-Identifier: BSD-2-Clause
"""Which mirrored devices a node has, and whose they are."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command, Operand
from moorage.cli.listing import LOOK, print_objects
from moorage.cli.options import DEBUG, JSON

_COLUMNS = {
    "node": ("Node", "text"),
    "minor": ("Minor", "number"),
    "instance": ("Instance", "text"),
    "disk": ("Disk", "text"),
    "role": ("Role", "text"),
    "peer": ("PeerNode", "text"),
}
_DISK = (
    *("name", "uuid", "instance", "iv_name", "node"),
    *("nodes", "logical_id"),
)
_MINORS = slice(3, 5)
"""Where a mirrored disk's ``logical_id`` has the numbers of both nodes."""


def _list_drbd(call: Call) -> None:
    (node,) = call.look_up("node", ["name"])
    disks = call.rows("disk", _DISK, ["==", "dev_type", "drbd"])
    told = sorted(
        (one for disk in disks for one in _sides(disk) if one["node"] == node["name"]),
        key=lambda one: int(one["minor"]),
    )
    if call.option("json"):
        call.show(told, ())
    else:
        print_objects(call, _COLUMNS, _COLUMNS, told)


def _sides(disk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield both devices of a disk; one that nobody has plays no role."""
    owned = disk["instance"] is not None
    slot = disk["iv_name"] if owned else disk["name"] or disk["uuid"]
    pairs = zip(disk["nodes"], disk["logical_id"][_MINORS], strict=True)
    for (name, minor), peer in zip(pairs, reversed(disk["nodes"]), strict=True):
        role = "primary" if name == disk["node"] else "secondary"
        yield {
            "node": name,
            "minor": minor,
            "instance": disk["instance"],
            "disk": slot,
            "role": role if owned else None,
            "peer": peer,
        }


COMMAND = Command(
    "list-drbd",
    _list_drbd,
    "List the mirrored devices of a node, and whose disks they are",
    (Operand("NODE"),),
    (*LOOK[:2], JSON, DEBUG),
    examples={
        "gnt-node list-drbd node1": "whose /dev/drbd0 is it there?",
        "gnt-node list-drbd --no-headers --separator=: node1": "for a program",
    },
)
