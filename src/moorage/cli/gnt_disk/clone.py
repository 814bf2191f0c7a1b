# SPDX-License-Identifier: BSD-2-Clause
"""Make a new disk with what another one holds."""

from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import perform
from moorage.cli.options import IGNORE_CAPACITY, JOB, RATE, forced, overridden
from moorage.errors import BadInput

from .convert import TARGET, target
from .options import DISK


def clone(call: Call) -> int:
    """Make a new, detached disk with what this one holds now, in any storage."""
    (disk,) = call.words
    fields = target(call) | call.given(new_name="name", node="node", rate="rate")
    if "new_name" not in fields:
        raise BadInput("the new disk needs a name", hint="add --name NAME")
    uuid = perform(
        call, "OP_DISK_CLONE", disk=disk, **fields, **forced(call), **overridden(call)
    )
    name = fields["new_name"]
    call.terminal.print(f"Cloned disk {disk}: disk {name} ({uuid})")
    return 0


COMMANDS = (
    Command(
        "clone",
        clone,
        "Make a new, detached disk with what a disk holds now, in any storage",
        (DISK,),
        (
            Option(("--name",), "name of the new disk", "NAME"),
            *TARGET,
            Option(("-n", "--node"), "the node that does the work", "NODE"),
            RATE,
            IGNORE_CAPACITY,
            *JOB,
        ),
        examples=(
            Example(
                "gnt-disk clone data1 --name data2", "where it is, by a snapshot if any"
            ),
            Example(
                "gnt-disk clone data1 --name data2 --pool slow",
                "to another storage pool",
            ),
        ),
    ),
)
