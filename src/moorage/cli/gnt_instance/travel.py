# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance move, change-group, batch-create."""

import json
from pathlib import Path
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import follow, perform, perform_all
from moorage.cli.options import (
    ASKING,
    IALLOCATOR,
    IGNORE_IPOLICY,
    JOB,
    SHUTDOWN_TIMEOUT,
    moot,
)
from moorage.errors import BadInput, MoorageError
from moorage.units import parse_size

_ALIASES = {"name": "instance_name", "os": "os_type", "template": "disk_template"}


def move(call: Call) -> int:
    """Send an instance to another node, with its local disks."""
    (name,) = call.words
    if not call.option("target_node"):
        raise BadInput("nobody said where to", hint=f"gnt-instance move -n NODE {name}")
    call.ask(f"Instance {name} will be moved. Continue?")
    fields = call.given(target_node="target_node", shutdown_timeout="shutdown_timeout")
    for switch in ("ignore_consistency", "ignore_ipolicy"):
        if call.option(switch):
            fields[switch] = True
    return _through(call, "OP_INSTANCE_MOVE", name, fields)


def change_group(call: Call) -> int:
    """Send an instance to a node of another node group."""
    (name,) = call.words
    call.warn(f"Instance {name} will go to another node group. Continue?")
    fields = call.given(iallocator="iallocator")
    if call.option("to"):
        fields["target_groups"] = call.option("to")
    if call.option("ignore_ipolicy"):
        fields["ignore_ipolicy"] = True
    return _through(call, "OP_INSTANCE_CHANGE_GROUP", name, fields)


def _through(call: Call, op_id: str, name: str, fields: dict[str, Any]) -> int:
    """Carry out an operation, and follow the jobs that it submits."""
    result = perform(call, op_id, instance_name=name, **fields)
    call.terminal.print(f"Instance {name} goes to node {result['target_node']}")
    broken: list[MoorageError] = []
    for _, job in result.get("jobs", ()):
        try:  # the jobs after one that fails put right what it left
            follow(call, int(job))
        except MoorageError as error:
            broken.append(error)
    if broken:
        raise broken[0]
    return 0


def batch_create(call: Call) -> int:
    """Make the instances that a file describes, each in a job of its own."""
    (file,) = call.words
    ops = {}
    for one in _described(file):
        fields = {_ALIASES.get(key, key): value for key, value in one.items()}
        fields["disks"] = [_sized(disk) for disk in fields.get("disks", ())]
        if call.option("iallocator") and "pnode" not in fields:
            fields["iallocator"] = call.option("iallocator")
        name = str(fields.get("instance_name") or "")
        if not name or name in ops:
            raise BadInput(f"{file}: every instance has a name, and its own")
        ops[name] = {"OP_ID": "OP_INSTANCE_CREATE", "mode": "create", **fields}
    return perform_all(call, ops) if ops else 0


def _described(file: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{file} is no JSON: {error}") from error
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadInput(
            f"{file} holds no list of instances",
            hint='[{"name": "web1", "disk_template": "file", '
            '"disks": [{"size": "1G"}], "os": "debian"}]',
        )
    return found


def _sized(disk: Any) -> dict[str, Any]:  # noqa: ANN401 - somebody's JSON
    if not isinstance(disk, dict):
        raise BadInput(f"a disk is described by its size and more, not by {disk!r}")
    size = disk.get("size")
    return disk | ({"size": int(parse_size(size))} if isinstance(size, str) else {})


def _listed(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


COMMANDS = (
    Command(
        "move",
        move,
        "Send an instance to another node, with disks that are on one node alone",
        (Operand("INSTANCE"),),
        (
            Option(("-n", "--node"), "the node to go to", "NODE", dest="target_node"),
            SHUTDOWN_TIMEOUT,
            Option(("--ignore-consistency",), "go on though a mirror is degraded"),
            IGNORE_IPOLICY,
            moot("--compress", "the storage itself copies, block by block", "WAY"),
            *ASKING,
            *JOB,
        ),
        examples=(Example("gnt-instance move -f -n node3 web1", "with plain disks"),),
    ),
    Command(
        "change-group",
        change_group,
        "Send an instance to a node of another node group",
        (Operand("INSTANCE"),),
        (
            IALLOCATOR,
            Option(("--to",), "the groups that it may go to", "GROUP,...", _listed),
            IGNORE_IPOLICY,
            moot("--early-release", "locks are released as early as can be"),
            *ASKING,
            *JOB,
        ),
    ),
    Command(
        "batch-create",
        batch_create,
        "Make the instances that a JSON file describes",
        (Operand("FILE"),),
        (
            IALLOCATOR,
            moot("--opportunistic-locking", "locks of nodes are shared"),
            *JOB,
        ),
    ),
)
