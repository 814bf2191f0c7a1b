# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance: virtual machines, from making them to removing them."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing, tagging

PROGRAM = Program(
    "gnt-instance",
    "make, run, move and change virtual machines",
    __name__,
    (
        Verb("add", "add", "Make an instance with its disks, and start it"),
        *listing("listed", "instance"),
        Verb(
            "info",
            "info",
            "Show all about instances: parameters, disks, where they are",
            ("show",),
        ),
        Verb("modify", "modify", "Change an instance: its disks, cards and parameters"),
        Verb("startup", "power", "Start instances", ("start",)),
        Verb("shutdown", "power", "Shut instances down", ("stop",)),
        Verb("reboot", "power", "Reboot instances"),
        Verb(
            "remove",
            "power",
            "Remove an instance and its attached disks; detached ones stay",
        ),
        Verb(
            "rename",
            "renewal",
            "Give an instance that is down another name; its volumes keep theirs",
        ),
        Verb(
            "reinstall",
            "renewal",
            "Install an OS on the disks again: what they hold is lost",
        ),
        Verb(
            "recreate-disks",
            "renewal",
            "Make new, empty volumes for disks whose data is lost",
        ),
        Verb(
            "migrate",
            "travel",
            "Move a running instance to another node, without stopping it",
        ),
        Verb("failover", "travel", "Stop an instance and start it on another node"),
        Verb(
            "move",
            "travel",
            "Send an instance to another node, with disks that are on one node alone",
        ),
        Verb(
            "change-group", "travel", "Send an instance to a node of another node group"
        ),
        Verb("batch-create", "travel", "Make the instances that a JSON file describes"),
        Verb("grow-disk", "disks", "Make a disk larger"),
        Verb(
            "activate-disks",
            "disks",
            "Make an instance's disks usable on its node; print where they are",
        ),
        Verb(
            "deactivate-disks", "disks", "Take an instance's disks off its node again"
        ),
        Verb(
            "replace-disks",
            "disks",
            "Make one of the two copies of mirrored disks anew",
        ),
        Verb(
            "console",
            "console",
            "Connect to an instance's serial console; Ctrl-] leaves",
        ),
        *tagging("instance"),
    ),
)

main = partial(run, PROGRAM)
