# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance grow-disk, activate-disks, deactivate-disks."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.operation import performs
from moorage.cli.options import JOB, NO_INPUT, NO_WAIT_FOR_SYNC, OVERRIDES, YES, moot
from moorage.units import is_whole, parse_size

from .selecting import INSTANCE


def _grow(call: Call) -> None:
    _, which, amount = call.words
    disk, size = int(which) if is_whole(which) else which, parse_size(amount)
    perform(call, "OP_INSTANCE_GROW_DISK", **call.fields, disk=disk, amount=size)


def _activate(call: Call) -> None:
    for place in perform(call, "OP_INSTANCE_ACTIVATE_DISKS", **call.fields):
        call.terminal.print("{}:{}:{}".format(*place))


_KEPT = "nobody is asked, and the disks of a guest that runs are never detached"
COMMANDS = (
    Command(
        "grow-disk",
        _grow,
        "Make a disk larger",
        (*INSTANCE, Operand("DISK"), Operand("AMOUNT")),
        (
            Option(("--absolute",), "AMOUNT is the new size, not what is added"),
            *OVERRIDES,
            NO_WAIT_FOR_SYNC,
            *JOB,
        ),
        examples={"gnt-instance grow-disk web1 0 5G": "5 GiB more"},
    ),
    Command(
        "activate-disks",
        _activate,
        "Make an instance's disks usable on its node; print where they are",
        INSTANCE,
        (
            Option(("--ignore-size",), "also disks whose devices have another size"),
            Option(("--wait-for-sync",), "wait until copies of disks are the same"),
            *JOB,
        ),
    ),
    Command(
        "deactivate-disks",
        performs("OP_INSTANCE_DEACTIVATE_DISKS"),
        "Take an instance's disks off its node again",
        INSTANCE,
        (moot("--force", _KEPT, short="-f")._replace(local=False), YES, NO_INPUT, *JOB),
    ),
)
