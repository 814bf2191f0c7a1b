# SPDX-License-Identifier: BSD-2-Clause
"""Change a disk: its size, name, mode, parameters; copy it."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.operation import performs
from moorage.cli.option_syntax import merged, reset, text_values
from moorage.cli.options import FORCE_PARAMS, IGNORE_CAPACITY, JOB, OVERRIDES
from moorage.units import format_size, parse_size

from .options import DISK, MODE, PARAM


def _grow(call: Call) -> None:
    disk, amount = call.words
    size = parse_size(amount)
    perform(call, "OP_DISK_GROW", **call.fields, amount=size)
    word = "to" if call.option("absolute") else "by"
    call.terminal.print(f"Grew disk {disk} {word} {format_size(size)}")


def _changed(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return parameters as texts; those set to none go back to their default."""
    return text_values(reset(merged(given)))


COMMANDS = (
    Command(
        "grow",
        _grow,
        "Make a disk larger; a running guest sees it",
        (DISK, Operand("AMOUNT")),
        (
            Option(("--absolute",), "AMOUNT is the new size, not what is added"),
            *OVERRIDES,
            *JOB,
        ),
        examples={
            "gnt-disk grow data1 5G": "5 GiB more",
            "gnt-disk grow data1 20G --absolute": "20 GiB in all",
        },
    ),
    Command(
        "rename",
        performs("OP_DISK_RENAME", "Renamed disk {disk} to {new_name}"),
        "Give a disk another name",
        (DISK, Operand("NEW_NAME", field="new_name")),
        JOB,
    ),
    Command(
        "snapshot",
        performs("OP_DISK_SNAPSHOT", "Made a snapshot of disk {disk}: disk {result}"),
        "Make a new, detached disk of what a disk holds now",
        (DISK,),
        (
            Option(("--name",), "name of the new disk", "NAME", dest="new_name"),
            IGNORE_CAPACITY,
            *JOB,
        ),
        examples={"gnt-disk snapshot data1 --name monday": "a copy to keep"},
    ),
    Command(
        "modify",
        performs(
            "OP_DISK_SET_PARAMS",
            "Modified disk {disk}",
            lacks="give --mode, --name or -D",
        ),
        "Change a disk's mode, name or parameters",
        (DISK,),
        (
            MODE,
            Option(("--name",), "the new name", "NAME"),
            PARAM._replace(join=_changed),
            FORCE_PARAMS,
            Option(("--lift-quarantine",), "somebody looked: it is safe to use"),
            *JOB,
        ),
    ),
)
