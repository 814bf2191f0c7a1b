# SPDX-License-Identifier: BSD-2-Clause
"""gnt-group: groups of nodes that see the same storage."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing, tagging

PROGRAM = Program(
    "gnt-group",
    "group nodes that see the same storage",
    __name__,
    (
        Verb("add", "commands", "Make a group"),
        *listing("commands", "group"),
        Verb("info", "commands", "Show all about groups", ("show",)),
        Verb("modify", "commands", "Change a group"),
        Verb("rename", "commands", "Give a group another name"),
        Verb("remove", "commands", "Remove an empty group"),
        Verb("assign-nodes", "commands", "Put nodes into a group"),
        Verb(
            "evacuate", "commands", "Let every instance of a group go to other groups"
        ),
        Verb("cpu-models", "commands", "Show which CPU models all nodes have"),
        Verb(
            "show-ispecs-cmd",
            "commands",
            "Print the commands that would make groups' policies as they are",
        ),
        *tagging("group"),
    ),
)

main = partial(run, PROGRAM)
