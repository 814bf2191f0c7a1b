# SPDX-License-Identifier: BSD-2-Clause
"""Give a disk to an instance, and take it back."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.operation import performs
from moorage.cli.options import JOB

from .options import DISK


def _attach(call: Call) -> None:
    disk, instance = call.words
    done = perform(call, "OP_DISK_ATTACH", **call.fields)
    slot = f" as {done[0][0]}" if done else ""
    call.terminal.print(f"Attached disk {disk} to instance {instance}{slot}")


COMMANDS = (
    Command(
        "attach",
        _attach,
        "Attach a disk to an instance, running or not",
        (DISK, Operand("INSTANCE", field="instance_name")),
        (
            Option(("--index",), "the slot; -1, after the last, by default", "N", int),
            *JOB,
        ),
        examples={"gnt-disk attach data1 web1": "as the last disk of web1"},
    ),
    Command(
        "detach",
        performs("OP_DISK_DETACH", "Detached disk {disk}"),
        "Detach a disk from its instance; its data stays",
        (DISK,),
        JOB,
        examples={"gnt-disk detach data1": "data1 belongs to nobody then"},
    ),
)
