# SPDX-License-Identifier: BSD-2-Clause
"""What nodes keep disks on, and which mirrored devices they have."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import fetch
from moorage.cli.listing import LOOK, OUTPUT, chosen, print_objects
from moorage.cli.operation import Performs
from moorage.cli.option_syntax import truth
from moorage.cli.options import DEBUG, JOB, JSON, PRIORITY
from moorage.errors import BadInput

from .options import NODE

_STORAGE = {
    "node": ("Node", "text"),
    "type": ("Type", "text"),
    "name": ("Name", "text"),
    "size": ("Size", "unit"),
    "used": ("Used", "unit"),
    "free": ("Free", "unit"),
    "allocatable": ("Allocatable", "bool"),
}
_VOLUMES = {
    "node": ("Node", "text"),
    "phys": ("PhysDev", "text"),
    "vg": ("VG", "text"),
    "name": ("Name", "text"),
    "size": ("Size", "unit"),
    "instance": ("Instance", "text"),
    "disk": ("Disk", "text"),
}
_TYPES = ("lvm-pv", "lvm-vg", "file", "sharedfile", "gluster", "rbd", "drbd8", "ext")


def _list_storage(call: Call) -> int:
    return _table(call, _STORAGE, tuple(_STORAGE))


def _volumes(call: Call) -> int:
    usual = tuple(name for name in _VOLUMES if name != "disk")  # scripts count columns
    return _table(call, _VOLUMES, usual)


def _table(
    call: Call, known: Mapping[str, tuple[str, str]], usual: tuple[str, ...]
) -> int:
    fields = chosen(call.option("output"), usual)
    for name in fields:
        if name not in known:
            raise BadInput(f"there is no field '{name}': there is {', '.join(known)}")
    found = fetch(call, **call.fields)
    print_objects(call, known, fields, found["rows"])
    for node, why in found["silent"].items():
        call.terminal.talk(f"Warning: node {node} gives no answer: {why}")
    return int(bool(found["silent"]))


def _changes(call: Call) -> dict[str, dict[str, bool]]:
    allocatable = call.option("allocatable")
    return {"changes": {} if allocatable is None else {"allocatable": allocatable}}


_COLUMNS = {
    "node": ("Node", "text"),
    "minor": ("Minor", "number"),
    "instance": ("Instance", "text"),
    "disk": ("Disk", "text"),
    "role": ("Role", "text"),
    "peer": ("PeerNode", "text"),
}
_DISK = (*("name", "uuid", "instance", "iv_name", "node"), *("nodes", "logical_id"))
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


_NODES = (Operand("NODE", 0, None, "nodes"),)
_UNIT = (*NODE, Operand("TYPE", field="storage_type"), Operand("NAME", field="name"))
COMMANDS = (
    Command(
        "list-storage",
        _list_storage,
        _NODES,
        (OUTPUT, *LOOK, fill("-t/--storage-type", choices=_TYPES), PRIORITY, DEBUG),
        examples={"gnt-node list-storage -t lvm-pv node1": "physical volumes"},
        operation="OP_NODE_QUERY_STORAGE",
    ),
    Command(
        "volumes",
        _volumes,
        _NODES,
        (OUTPUT, *LOOK, PRIORITY, DEBUG),
        operation="OP_NODE_QUERYVOLS",
    ),
    Command(
        "modify-storage",
        Performs(more=_changes),
        _UNIT,
        (Option(("--allocatable",), "whether they may", "yes|no", truth), *JOB),
        examples={
            "gnt-node modify-storage --allocatable=no node1 lvm-pv /dev/sdb": (
                "before /dev/sdb is taken out"
            )
        },
        operation="OP_NODE_MODIFY_STORAGE",
    ),
    Command(
        "repair-storage",
        Performs("Repaired storage unit '{name}' on node '{node_name}'"),
        _UNIT,
        (*fills("--ignore-consistency"), *JOB),
        operation="OP_REPAIR_NODE_STORAGE",
    ),
    Command(
        "list-drbd",
        _list_drbd,
        (Operand("NODE"),),
        (*LOOK[:2], JSON, DEBUG),
        examples={
            "gnt-node list-drbd node1": "whose /dev/drbd0 is it there?",
            "gnt-node list-drbd --no-headers --separator=: node1": "for a program",
        },
    ),
)
