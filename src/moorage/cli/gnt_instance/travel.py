# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance migrate, failover, move, change-group, batch-create."""

import json
from pathlib import Path
from typing import Any

from moorage.cli.command import Call, Command, Operand
from moorage.cli.fields import fill, fills
from moorage.cli.follow import follow, perform, perform_all
from moorage.cli.operation import Performs, migration_mode
from moorage.cli.options import ASKING, JOB, NON_LIVE, moot, refused
from moorage.errors import BadInput, MoorageError
from moorage.units import parse_size

from .selecting import INSTANCE

_ALIASES = {"name": "instance_name", "os": "os_type", "template": "disk_template"}


def _move(call: Call) -> None:
    (name,) = call.words
    if not call.option("target_node"):
        raise BadInput("nobody said where to", hint=f"gnt-instance move -n NODE {name}")
    call.ask(f"Instance {name} will be moved. Continue?")
    _through(call)


def _change_group(call: Call) -> None:
    (name,) = call.words
    call.warn(f"Instance {name} will go to another node group. Continue?")
    _through(call)


def _through(call: Call) -> None:
    """Carry out the operation, and follow the jobs that it submits."""
    result = perform(call, **call.fields)
    target = result["target_node"]
    call.terminal.print(f"Instance {call.words[0]} goes to node {target}")
    broken: list[MoorageError] = []
    for _, job in result.get("jobs", ()):
        try:  # the jobs after one that fails put right what it left
            follow(call, int(job))
        except MoorageError as error:
            broken.append(error)
    if broken:
        raise broken[0]


def _batch_create(call: Call) -> int:
    (file,) = call.words
    each: dict[str, dict[str, Any]] = {}
    for one in _described(file):
        fields = {_ALIASES.get(key, key): value for key, value in one.items()}
        fields["disks"] = [_sized(disk) for disk in fields.get("disks", ())]
        if call.option("iallocator") and "pnode" not in fields:
            fields["iallocator"] = call.option("iallocator")
        name = str(fields.get("instance_name") or "")
        if not name or name in each:
            raise BadInput(f"{file}: every instance has a name, and its own")
        each[name] = {"mode": "create", **fields}
    return perform_all(call, each)


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


def _migrate(call: Call) -> None:
    mode = migration_mode(call)
    if not call.option("cleanup"):
        call.ask(f"Instance {call.words[0]} will be migrated. Continue?")
    perform(call, **call.fields, **mode)


COMMANDS = (
    Command(
        "migrate",
        _migrate,
        INSTANCE,
        (
            *fills(
                "-n/--target-node -I/--iallocator --cleanup --allow-failover",
                "--migration-mode=mode",
                "--ignore-ipolicy --ignore-capacity --ignore-processor",
            ),
            NON_LIVE._replace(help="pause the guest while it moves"),
            moot("--no-runtime-changes", "a migration changes nobody's memory"),
            moot(
                "--ignore-hvversions",
                "versions are not compared: a target that lacks the machine says so "
                "before the guest leaves",
            ),
            *ASKING,
            *JOB,
        ),
        examples={"gnt-instance migrate -f -n node3 web1": "to node3, unasked"},
        operation="OP_INSTANCE_MIGRATE",
    ),
    Command(
        "failover",
        Performs(
            asks="Failover will happen to instance {instance_name}. This requires a "
            "shutdown of the instance. Continue?"
        ),
        INSTANCE,
        (
            *fills(
                "-n/--target-node -I/--iallocator --ignore-consistency",
                "--shutdown-timeout --ignore-ipolicy --ignore-capacity",
            ),
            refused("--cleanup", "a failover that broke is undone by itself"),
            *ASKING,
            *JOB,
        ),
        examples={
            "gnt-node modify --offline yes node1": "first, if node1 lost power",
            "gnt-instance failover -f -n node3 web1": "to node3, unasked",
        },
        operation="OP_INSTANCE_FAILOVER",
    ),
    Command(
        "move",
        _move,
        INSTANCE,
        (
            *fills(
                "-n/--node=target_node --shutdown-timeout --ignore-consistency",
                "--ignore-ipolicy",
            ),
            moot("--compress", "the storage itself copies, block by block", "WAY"),
            *ASKING,
            *JOB,
        ),
        examples={"gnt-instance move -f -n node3 web1": "with plain disks"},
        operation="OP_INSTANCE_MOVE",
    ),
    Command(
        "change-group",
        _change_group,
        INSTANCE,
        (
            *fills("-I/--iallocator --ignore-ipolicy"),
            fill("--to=target_groups", metavar="GROUP,..."),
            moot("--early-release", "locks are released as early as can be"),
            *ASKING,
            *JOB,
        ),
        operation="OP_INSTANCE_CHANGE_GROUP",
    ),
    Command(
        "batch-create",
        _batch_create,
        (Operand("FILE"),),
        (
            *fills("-I/--iallocator"),
            moot("--opportunistic-locking", "locks of nodes are shared"),
            *JOB,
        ),
        operation="OP_INSTANCE_CREATE",
    ),
)
