# SPDX-License-Identifier: BSD-2-Clause
"""What nodes keep disks on."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import fetch, perform
from moorage.cli.listing import LOOK, OPTIONS, chosen, print_table
from moorage.cli.options import DEBUG, JOB, PRIORITY, truth
from moorage.errors import BadInput

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
_NORMAL, _UNAVAILABLE = 0, 3


def list_storage(call: Call) -> int:
    """List storage units."""
    asked = call.given(storage_type="storage_type")
    return _table(call, "OP_NODE_QUERY_STORAGE", _STORAGE, tuple(_STORAGE), asked)


def volumes(call: Call) -> int:
    """List logical volumes."""
    usual = tuple(name for name in _VOLUMES if name != "disk")  # scripts count columns
    return _table(call, "OP_NODE_QUERYVOLS", _VOLUMES, usual, {})


def _table(
    call: Call,
    op_id: str,
    known: Mapping[str, tuple[str, str]],
    usual: tuple[str, ...],
    asked: Mapping[str, Any],
) -> int:
    fields = chosen(call.option("output"), usual)
    for name in fields:
        if name not in known:
            raise BadInput(f"there is no field '{name}': there is {', '.join(known)}")
    found = fetch(call, op_id, nodes=call.words, **asked)
    columns = [{"title": known[one][0], "kind": known[one][1]} for one in fields]
    print_table(call, columns, [_row(row, fields) for row in found["rows"]])
    for node, why in found["silent"].items():
        call.terminal.talk(f"Warning: node {node} gives no answer: {why}")
    return int(bool(found["silent"]))


def _row(row: Mapping[str, Any], fields: Sequence[str]) -> list[tuple[int, Any]]:
    values = (row[name] for name in fields)
    return [(_UNAVAILABLE if one is None else _NORMAL, one) for one in values]


def modify_storage(call: Call) -> int:
    """Change a storage unit."""
    node, kind, name = call.words
    changes = call.given(allocatable="allocatable")
    fields = {"node_name": node, "storage_type": kind, "name": name}
    perform(call, "OP_NODE_MODIFY_STORAGE", **fields, changes=changes)
    return 0


def repair_storage(call: Call) -> int:
    """Repair a volume group."""
    node, kind, name = call.words
    fields = {"node_name": node, "storage_type": kind, "name": name}
    forced = call.given(ignore_consistency="ignore_consistency")
    perform(call, "OP_REPAIR_NODE_STORAGE", **fields, **forced)
    call.terminal.print(f"Repaired storage unit '{name}' on node '{node}'")
    return 0


_NODES = (Operand("NODE", 0, None),)
_UNIT = (Operand("NODE"), Operand("TYPE"), Operand("NAME"))
COMMANDS = (
    Command(
        "list-storage",
        list_storage,
        "List what nodes keep disks on, with its room",
        _NODES,
        (
            OPTIONS[0],
            *LOOK,
            Option(("-t", "--storage-type"), "this type alone", "TYPE", choices=_TYPES),
            PRIORITY,
            DEBUG,
        ),
        examples=(
            Example("gnt-node list-storage -t lvm-pv node1", "physical volumes"),
        ),
    ),
    Command(
        "volumes",
        volumes,
        "List the logical volumes of nodes, and whose they are",
        _NODES,
        (OPTIONS[0], *LOOK, PRIORITY, DEBUG),
    ),
    Command(
        "modify-storage",
        modify_storage,
        "Say whether new volumes may lie on a physical volume",
        _UNIT,
        (
            Option(("--allocatable",), "whether they may", "yes|no", truth),
            *JOB,
        ),
        examples=(
            Example(
                "gnt-node modify-storage --allocatable=no node1 lvm-pv /dev/sdb",
                "before /dev/sdb is taken out",
            ),
        ),
    ),
    Command(
        "repair-storage",
        repair_storage,
        "Take devices that are gone out of a volume group",
        _UNIT,
        (
            Option(("--ignore-consistency",), "even if disks lose their only copy"),
            *JOB,
        ),
    ),
)
