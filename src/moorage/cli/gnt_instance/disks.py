# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance grow-disk, activate-disks, deactivate-disks."""

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import (
    JOB,
    NO_INPUT,
    NO_WAIT_FOR_SYNC,
    OVERRIDES,
    YES,
    moot,
    overridden,
    unwaited,
)
from moorage.units import is_whole, parse_size


def grow(call: Call) -> int:
    """Make a disk of an instance larger."""
    name, which, amount = call.words
    disk = int(which) if is_whole(which) else which
    perform(
        call,
        "OP_INSTANCE_GROW_DISK",
        instance_name=name,
        disk=disk,
        amount=parse_size(amount),
        absolute=bool(call.option("absolute")),
        **overridden(call),
        **unwaited(call),
    )
    return 0


def activate(call: Call) -> int:
    """Attach an instance's disks on its node and say where."""
    (name,) = call.words
    switches = ("ignore_size", "wait_for_sync")
    fields = {name: True for name in switches if call.option(name)}
    for node, slot, where in perform(
        call, "OP_INSTANCE_ACTIVATE_DISKS", instance_name=name, **fields
    ):
        call.terminal.print(f"{node}:{slot}:{where}")
    return 0


def deactivate(call: Call) -> int:
    """Detach an instance's disks from its node."""
    (name,) = call.words
    forced = {"force": True} if call.option("force") else {}
    perform(call, "OP_INSTANCE_DEACTIVATE_DISKS", instance_name=name, **forced)
    return 0


_KEPT = "nobody is asked, and the disks of a guest that runs are never detached"
COMMANDS = (
    Command(
        "grow-disk",
        grow,
        "Make a disk larger",
        (Operand("INSTANCE"), Operand("DISK"), Operand("AMOUNT")),
        (
            Option(("--absolute",), "AMOUNT is the new size, not what is added"),
            *OVERRIDES,
            NO_WAIT_FOR_SYNC,
            *JOB,
        ),
        examples=(Example("gnt-instance grow-disk web1 0 5G", "5 GiB more"),),
    ),
    Command(
        "activate-disks",
        activate,
        "Make an instance's disks usable on its node; print where they are",
        (Operand("INSTANCE"),),
        (
            Option(("--ignore-size",), "also disks whose devices have another size"),
            Option(("--wait-for-sync",), "wait until copies of disks are the same"),
            *JOB,
        ),
    ),
    Command(
        "deactivate-disks",
        deactivate,
        "Take an instance's disks off its node again",
        (Operand("INSTANCE"),),
        (moot("--force", _KEPT, short="-f"), YES, NO_INPUT, *JOB),
    ),
)
