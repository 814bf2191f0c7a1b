# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance replace-disks."""

from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform
from moorage.cli.options import IALLOCATOR, IGNORE_CAPACITY, JOB, moot, names
from moorage.errors import BadInput

from .selecting import INSTANCE

_MODES = {
    "on_primary": "replace_on_primary",
    "on_secondary": "replace_on_secondary",
    "auto": "replace_auto",
    "remote_node": "replace_new_secondary",
    "iallocator": "replace_new_secondary",
}


def _replace_disks(call: Call) -> None:
    asked = [word for word in _MODES if call.option(word)]
    if len(asked) != 1:
        raise BadInput(
            "which copy is to be made anew is said by one of -p, -s, -n, -I and -a",
            hint="-n NODE for a new secondary node, -a for the copy that is bad",
        )
    mode = _MODES[asked[0]]
    perform(call, "OP_INSTANCE_REPLACE_DISKS", **call.fields, mode=mode)


COMMAND = Command(
    "replace-disks",
    _replace_disks,
    "Make one of the two copies of mirrored disks anew",
    INSTANCE,
    (
        Option(
            ("-p", "--on-primary"), "in new volumes on the primary node", local=True
        ),
        Option(
            ("-s", "--on-secondary"), "in new volumes on the secondary node", local=True
        ),
        Option(
            ("-n", "--new-secondary"),
            "on this node, from now on",
            "NODE",
            dest="remote_node",
        ),
        IALLOCATOR,
        Option(("-a", "--auto"), "the copy that is bad", local=True),
        Option(("--disks",), "these disks only: slots, with commas", "SLOTS", names),
        Option(("--early-release",), "remove the old copy before the new one is made"),
        IGNORE_CAPACITY,
        moot("--ignore-ipolicy", "no size changes"),
        *JOB,
    ),
    examples={
        "gnt-instance replace-disks -n node3 web1": "node3 becomes secondary",
        "gnt-instance replace-disks -s web1": "new volumes on the secondary",
    },
)
