# SPDX-License-Identifier: BSD-2-Clause
"""Be rid of a disk, with its data or without asking for it."""

from moorage.cli.command import Call, Command, Example
from moorage.cli.follow import perform
from moorage.cli.options import (
    ASKING,
    JOB,
)
from moorage.errors import BadInput

from .options import DISK


def remove(call: Call) -> int:
    """Remove a detached disk and its data."""
    (disk,) = call.words
    call.ask(f"This will remove disk {disk} and all its data. Continue?")
    perform(call, "OP_DISK_REMOVE", disk=disk)
    call.terminal.print(f"Removed disk {disk}")
    return 0


def forget(call: Call) -> int:
    """Drop what the cluster knows of a disk that is lost."""
    (disk,) = call.words
    why = call.option("reason")
    if not why:
        raise BadInput(
            f"say why disk {disk} is forgotten",
            hint=f"gnt-disk forget --reason 'its node burnt' {disk}",
        )
    call.ask(f"This will forget disk {disk}; its data is not looked for. Continue?")
    perform(call, "OP_DISK_FORGET", disk=disk, why=why)
    call.terminal.print(f"Forgot disk {disk}")
    return 0


COMMANDS = (
    Command(
        "remove",
        remove,
        "Remove a detached disk and all its data",
        (DISK,),
        (*ASKING, *JOB),
        examples=(Example("gnt-disk remove -f data1", "without a question"),),
    ),
    Command(
        "forget",
        forget,
        "Drop the record of a disk that is lost; nothing is done to its storage",
        (DISK,),
        (*ASKING, *JOB),
        examples=(
            Example(
                "gnt-disk forget --reason 'node3 burnt' data1",
                "for a disk whose volume or node is gone for good",
            ),
        ),
    ),
)
