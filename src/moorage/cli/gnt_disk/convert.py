# SPDX-License-Identifier: BSD-2-Clause
"""Bring a disk's data to other storage: the disk itself, or a copy."""

from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform
from moorage.cli.options import FORCE_PARAMS, IGNORE_CAPACITY, JOB, OVERRIDES, RATE
from moorage.errors import BadInput

from .options import ACCESS, DISK, PARAM, PROVIDER

_STORAGE = {"disk_template", "pool", "provider", "access", "adopt", "params"}
"""Fields that say which storage a disk is to have."""


def _convert(call: Call) -> None:
    if not _STORAGE & call.given.keys():
        raise BadInput(
            "which storage is the disk to have?",
            hint="add -t sharedfile, -t ext -p ...",
        )
    perform(call, "OP_DISK_CONVERT", **call.fields)
    call.terminal.print(f"Converted disk {call.words[0]}")


def _move(call: Call) -> None:
    pool = call.option("pool")
    if not pool:
        raise BadInput("to which storage pool?", hint="add --pool POOL")
    perform(call, "OP_DISK_CONVERT", **call.fields)
    call.terminal.print(f"Moved disk {call.words[0]} to storage pool {pool}")


def _clone(call: Call) -> None:
    name = call.option("new_name")
    if name is None:
        raise BadInput("the new disk needs a name", hint="add --name NAME")
    uuid = perform(call, "OP_DISK_CLONE", **call.fields)
    call.terminal.print(f"Cloned disk {call.words[0]}: disk {name} ({uuid})")


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

_WORK = (
    Option(("-n", "--node"), "the node that does the work", "NODE"),
    RATE,
)
_HOW = (*_WORK, *OVERRIDES, *JOB)

COMMANDS = (
    Command(
        "convert",
        _convert,
        "Bring a disk's data to other storage, also while its instance runs",
        (DISK,),
        (
            *_TARGET,
            Option(("--adopt",), "a device to overwrite, not a new volume", "PATH"),
            *_HOW,
        ),
        examples={
            "gnt-disk convert -t ext -p san data1": "to the provider san",
            "gnt-disk convert -t sharedfile --rate 50M data1": (
                "to an image file, at most 50 MiB a second"
            ),
        },
    ),
    Command(
        "move",
        _move,
        "Bring a disk's data to another storage pool, also while its instance runs",
        (DISK,),
        (Option(("--pool",), "the storage pool", "POOL"), *_HOW),
        examples={"gnt-disk move --pool fast data1": "to the pool fast"},
        surplus="the storage pool: gnt-disk move --pool POOL DISK",
    ),
    Command(
        "clone",
        _clone,
        "Make a new, detached disk with what a disk holds now, in any storage",
        (DISK,),
        (
            Option(("--name",), "name of the new disk", "NAME", dest="new_name"),
            *_TARGET,
            *_WORK,
            IGNORE_CAPACITY,
            *JOB,
        ),
        examples={
            "gnt-disk clone data1 --name data2": "where it is, by a snapshot if any",
            "gnt-disk clone data1 --name data2 --pool slow": "to another storage pool",
        },
        surplus="the new disk's name: gnt-disk clone DISK --name NAME",
    ),
)
