# SPDX-License-Identifier: BSD-2-Clause
"""Give a disk to an instance, and take it back."""

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import (
    JOB,
)

from .options import DISK


def attach(call: Call) -> int:
    """Attach a disk to an instance."""
    disk, instance = call.words
    fields = call.given(index="index")
    done = perform(call, "OP_DISK_ATTACH", disk=disk, instance_name=instance, **fields)
    slot = f" as {done[0][0]}" if done else ""
    call.terminal.print(f"Attached disk {disk} to instance {instance}{slot}")
    return 0


def detach(call: Call) -> int:
    """Detach a disk from its instance; the data stays."""
    (disk,) = call.words
    perform(call, "OP_DISK_DETACH", disk=disk)
    call.terminal.print(f"Detached disk {disk}")
    return 0


COMMANDS = (
    Command(
        "attach",
        attach,
        "Attach a disk to an instance, running or not",
        (DISK, Operand("INSTANCE")),
        (
            Option(("--index",), "the slot; -1, after the last, by default", "N", int),
            *JOB,
        ),
        examples=(Example("gnt-disk attach data1 web1", "as the last disk of web1"),),
    ),
    Command(
        "detach",
        detach,
        "Detach a disk from its instance; its data stays",
        (DISK,),
        JOB,
        examples=(Example("gnt-disk detach data1", "data1 belongs to nobody then"),),
    ),
)
