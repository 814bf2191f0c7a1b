# SPDX-License-Identifier: BSD-2-Clause
"""Change a disk: its size, name, mode, parameters; copy it."""

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import merged
from moorage.cli.options import (
    FORCE_PARAMS,
    IGNORE_CAPACITY,
    JOB,
    OVERRIDES,
    forced,
    overridden,
)
from moorage.errors import BadInput
from moorage.units import format_size, parse_size

from .options import DISK, MODE, PARAM


def grow(call: Call) -> int:
    """Make a disk larger."""
    disk, amount = call.words
    size, absolute = parse_size(amount), bool(call.option("absolute"))
    fields = {"disk": disk, "amount": size, "absolute": absolute}
    perform(call, "OP_DISK_GROW", **fields, **overridden(call))
    word = "to" if absolute else "by"
    call.terminal.print(f"Grew disk {disk} {word} {format_size(size)}")
    return 0


def rename(call: Call) -> int:
    """Give a disk another name; its volume keeps its own."""
    disk, name = call.words
    perform(call, "OP_DISK_RENAME", disk=disk, new_name=name)
    call.terminal.print(f"Renamed disk {disk} to {name}")
    return 0


def snapshot(call: Call) -> int:
    """Make a new, detached disk with what this one holds now."""
    (disk,) = call.words
    fields = call.given(new_name="name")
    uuid = perform(call, "OP_DISK_SNAPSHOT", disk=disk, **fields, **overridden(call))
    call.terminal.print(f"Made a snapshot of disk {disk}: disk {uuid}")
    return 0


def modify(call: Call) -> int:
    """Change a disk's mode, name or parameters."""
    (disk,) = call.words
    fields = call.given(mode="mode", name="name")
    params = merged(call.option("param"))
    if params:
        fields["params"] = {
            key: "default" if value is None else str(value)
            for key, value in params.items()
        }
    if call.option("lift_quarantine"):
        fields["lift_quarantine"] = True
    if not fields:
        raise BadInput("nothing to change", hint="give --mode, --name or -D")
    perform(call, "OP_DISK_SET_PARAMS", disk=disk, **fields, **forced(call))
    call.terminal.print(f"Modified disk {disk}")
    return 0


COMMANDS = (
    Command(
        "grow",
        grow,
        "Make a disk larger; a running guest sees it",
        (DISK, Operand("AMOUNT")),
        (
            Option(("--absolute",), "AMOUNT is the new size, not what is added"),
            *OVERRIDES,
            *JOB,
        ),
        examples=(
            Example("gnt-disk grow data1 5G", "5 GiB more"),
            Example("gnt-disk grow data1 20G --absolute", "20 GiB in all"),
        ),
    ),
    Command(
        "rename",
        rename,
        "Give a disk another name",
        (DISK, Operand("NEW_NAME")),
        JOB,
    ),
    Command(
        "snapshot",
        snapshot,
        "Make a new, detached disk of what a disk holds now",
        (DISK,),
        (Option(("--name",), "name of the new disk", "NAME"), IGNORE_CAPACITY, *JOB),
        examples=(Example("gnt-disk snapshot data1 --name monday", "a copy to keep"),),
    ),
    Command(
        "modify",
        modify,
        "Change a disk's mode, name or parameters",
        (DISK,),
        (
            MODE,
            Option(("--name",), "the new name", "NAME"),
            PARAM,
            FORCE_PARAMS,
            Option(("--lift-quarantine",), "somebody looked: it is safe to use"),
            *JOB,
        ),
    ),
)
