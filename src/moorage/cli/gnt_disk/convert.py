# SPDX-License-Identifier: BSD-2-Clause
"""Bring a disk's data to other storage: the disk itself, or a copy."""

from typing import Any

from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import merged, text_values
from moorage.cli.options import (
    FORCE_PARAMS,
    IGNORE_CAPACITY,
    JOB,
    OVERRIDES,
    RATE,
    forced,
    overridden,
)
from moorage.errors import BadInput

from .options import ACCESS, DISK, PARAM, PROVIDER


def convert(call: Call) -> int:
    """Bring a disk's data to other storage, running or not."""
    (disk,) = call.words
    fields = _target(call)
    if not fields:
        raise BadInput(
            "which storage is the disk to have?",
            hint="add -t sharedfile, -t ext -p ...",
        )
    fields |= call.given(node="node", rate="rate")
    perform(
        call, "OP_DISK_CONVERT", disk=disk, **fields, **forced(call), **overridden(call)
    )
    call.terminal.print(f"Converted disk {disk}")
    return 0


def move(call: Call) -> int:
    """Bring a disk's data to another storage pool, running or not."""
    (disk,) = call.words
    fields = call.given(pool="pool", node="node", rate="rate")
    if not fields.get("pool"):
        raise BadInput("to which storage pool?", hint="add --pool POOL")
    perform(call, "OP_DISK_CONVERT", disk=disk, **fields, **overridden(call))
    call.terminal.print(f"Moved disk {disk} to storage pool {fields['pool']}")
    return 0


def clone(call: Call) -> int:
    """Make a new, detached disk with what this one holds now, in any storage."""
    (disk,) = call.words
    fields = _target(call) | call.given(new_name="name", node="node", rate="rate")
    if "new_name" not in fields:
        raise BadInput("the new disk needs a name", hint="add --name NAME")
    uuid = perform(
        call, "OP_DISK_CLONE", disk=disk, **fields, **forced(call), **overridden(call)
    )
    name = fields["new_name"]
    call.terminal.print(f"Cloned disk {disk}: disk {name} ({uuid})")
    return 0


def _target(call: Call) -> dict[str, Any]:
    """Return what the options say of the new storage."""
    fields = call.given(
        disk_template="disk_template",
        pool="pool",
        provider="provider",
        access="access",
        adopt="adopt",
    )
    params = merged(call.option("param"))
    return {**fields, **({"params": text_values(params)} if params else {})}


_TARGET = (
    Option(
        ("-t", "--disk-template"),
        "how the data is to be stored; without it, as now",
        "NAME",
    ),
    PROVIDER,
    Option(("--pool",), "the storage pool that it is to be in", "POOL"),
    PARAM,
    ACCESS,
    FORCE_PARAMS,
)

_HOW = (
    Option(("-n", "--node"), "the node that does the work", "NODE"),
    RATE,
    *OVERRIDES,
    *JOB,
)

COMMANDS = (
    Command(
        "convert",
        convert,
        "Bring a disk's data to other storage, also while its instance runs",
        (DISK,),
        (
            *_TARGET,
            Option(("--adopt",), "a device to overwrite, not a new volume", "PATH"),
            *_HOW,
        ),
        examples=(
            Example("gnt-disk convert -t ext -p san data1", "to the provider san"),
            Example(
                "gnt-disk convert -t sharedfile --rate 50M data1",
                "to an image file, at most 50 MiB a second",
            ),
        ),
    ),
    Command(
        "move",
        move,
        "Bring a disk's data to another storage pool, also while its instance runs",
        (DISK,),
        (Option(("--pool",), "the storage pool", "POOL"), *_HOW),
        examples=(Example("gnt-disk move --pool fast data1", "to the pool fast"),),
        surplus="the storage pool: gnt-disk move --pool POOL DISK",
    ),
    Command(
        "clone",
        clone,
        "Make a new, detached disk with what a disk holds now, in any storage",
        (DISK,),
        (
            Option(("--name",), "name of the new disk", "NAME"),
            *_TARGET,
            Option(("-n", "--node"), "the node that does the work", "NODE"),
            RATE,
            IGNORE_CAPACITY,
            *JOB,
        ),
        examples=(
            Example(
                "gnt-disk clone data1 --name data2", "where it is, by a snapshot if any"
            ),
            Example(
                "gnt-disk clone data1 --name data2 --pool slow",
                "to another storage pool",
            ),
        ),
        surplus="the new disk's name: gnt-disk clone DISK --name NAME",
    ),
)
