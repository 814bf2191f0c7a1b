# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance grow-disk, activate-disks, deactivate-disks, replace-disks."""

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.operation import Performs
from moorage.cli.options import JOB, NO_INPUT, NO_WAIT_FOR_SYNC, YES, moot
from moorage.errors import BadInput
from moorage.units import is_whole, parse_size

from .selecting import INSTANCE

_MODES = {
    "on_primary": "replace_on_primary",
    "on_secondary": "replace_on_secondary",
    "auto": "replace_auto",
    "remote_node": "replace_new_secondary",
    "iallocator": "replace_new_secondary",
}


def _which(word: str) -> int | str:
    """Return a disk's slot, or its name."""
    return int(word) if is_whole(word) else word


def _activate(call: Call) -> None:
    for place in perform(call, **call.fields):
        call.terminal.print("{}:{}:{}".format(*place))


def _mode(call: Call) -> dict[str, str]:
    """Return which copy is made anew."""
    asked = [word for word in _MODES if call.option(word)]
    if len(asked) != 1:
        raise BadInput(
            "which copy is to be made anew is said by one of -p, -s, -n, -I and -a",
            hint="-n NODE for a new secondary node, -a for the copy that is bad",
        )
    return {"mode": _MODES[asked[0]]}


_KEPT = "nobody is asked, and the disks of a guest that runs are never detached"
COMMANDS = (
    Command(
        "grow-disk",
        Performs(),
        (
            *INSTANCE,
            Operand("DISK", field="disk", convert=_which),
            Operand("AMOUNT", field="amount", convert=parse_size),
        ),
        (
            *fills("--absolute --ignore-ipolicy --ignore-capacity"),
            NO_WAIT_FOR_SYNC,
            *JOB,
        ),
        examples={"gnt-instance grow-disk web1 0 5G": "5 GiB more"},
        operation="OP_INSTANCE_GROW_DISK",
    ),
    Command(
        "activate-disks",
        _activate,
        INSTANCE,
        (*fills("--ignore-size --wait-for-sync"), *JOB),
        operation="OP_INSTANCE_ACTIVATE_DISKS",
    ),
    Command(
        "deactivate-disks",
        Performs(),
        INSTANCE,
        (moot("--force", _KEPT, short="-f")._replace(field=True), YES, NO_INPUT, *JOB),
        operation="OP_INSTANCE_DEACTIVATE_DISKS",
    ),
    Command(
        "replace-disks",
        Performs(more=_mode),
        INSTANCE,
        (
            Option(("-p", "--on-primary"), "in new volumes on the primary node"),
            Option(("-s", "--on-secondary"), "in new volumes on the secondary node"),
            fill("-n/--new-secondary=remote_node", metavar="NODE"),
            *fills("-I/--iallocator --disks --early-release --ignore-capacity"),
            Option(("-a", "--auto"), "the copy that is bad"),
            moot("--ignore-ipolicy", "no size changes"),
            *JOB,
        ),
        examples={
            "gnt-instance replace-disks -n node3 web1": "node3 becomes secondary",
            "gnt-instance replace-disks -s web1": "new volumes on the secondary",
        },
        operation="OP_INSTANCE_REPLACE_DISKS",
    ),
)
