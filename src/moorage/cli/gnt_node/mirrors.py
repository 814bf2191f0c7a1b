# SPDX-License-Identifier: BSD-2-Clause
"""Which mirrored devices a node has, and whose they are."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli import details
from moorage.cli.command import Call, Command, Example, Operand
from moorage.cli.listing import LOOK, print_table
from moorage.cli.options import DEBUG, JSON
from moorage.cli.table import NORMAL, UNAVAILABLE

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


def list_drbd(call: Call) -> int:
    """List the mirrored devices of a node."""
    (node,) = details.look_up(call, "node", ["name"])
    disks = _mirrored(call)
    told = sorted(
        (one for disk in disks for one in _sides(disk) if one["node"] == node["name"]),
        key=lambda one: int(one["minor"]),
    )
    if call.option("json"):
        call.terminal.print(json.dumps(told, indent=2))
        return 0
    columns = [{"title": title, "kind": kind} for title, kind in _COLUMNS.values()]
    rows = [[_cell(one[name]) for name in _COLUMNS] for one in told]
    print_table(call, columns, rows)
    return 0


def _mirrored(call: Call) -> Iterator[dict[str, Any]]:
    """Yield the disks that the cluster itself mirrors."""
    _, rows = call.client.query("disk", list(_DISK), ["==", "dev_type", "drbd"])
    for row in rows:
        values = (value if status == NORMAL else None for status, value in row)
        yield dict(zip(_DISK, values, strict=True))


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


def _cell(value: Any) -> tuple[int, Any]:  # noqa: ANN401
    return (UNAVAILABLE if value is None else NORMAL), value


COMMAND = Command(
    "list-drbd",
    list_drbd,
    "List the mirrored devices of a node, and whose disks they are",
    (Operand("NODE"),),
    (*LOOK[:2], JSON, DEBUG),
    examples=(
        Example("gnt-node list-drbd node1", "whose /dev/drbd0 is it there?"),
        Example("gnt-node list-drbd --no-headers --separator=: node1", "for a program"),
    ),
)
