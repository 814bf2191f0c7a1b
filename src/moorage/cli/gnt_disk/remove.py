# SPDX-License-Identifier: BSD-2-Clause
"""Be rid of a disk, with its data or without asking for it."""

from moorage.cli.command import Call, Command
from moorage.cli.follow import perform
from moorage.cli.operation import performs
from moorage.cli.options import ASKING, JOB
from moorage.errors import BadInput

from .options import DISK


def _forget(call: Call) -> None:
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


COMMANDS = (
    Command(
        "remove",
        performs(
            "OP_DISK_REMOVE",
            "Removed disk {disk}",
            asks="This will remove disk {disk} and all its data. Continue?",
        ),
        "Remove a detached disk and all its data",
        (DISK,),
        (*ASKING, *JOB),
        examples={"gnt-disk remove -f data1": "without a question"},
    ),
    Command(
        "forget",
        _forget,
        "Drop the record of a disk that is lost; nothing is done to its storage",
        (DISK,),
        (*ASKING, *JOB),
        examples={
            "gnt-disk forget --reason 'node3 burnt' data1": (
                "for a disk whose volume or node is gone for good"
            )
        },
    ),
)
