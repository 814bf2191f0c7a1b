# SPDX-License-Identifier: BSD-2-Clause
"""gnt-node: the machines of the cluster, and emptying them."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing, tagging

PROGRAM = Program(
    "gnt-node",
    "add, list, empty and remove nodes",
    __name__,
    (
        Verb("add", "membership", "Add a node whose agent is running"),
        *listing("info", "node"),
        Verb("info", "info", "Show all about nodes", ("show",)),
        Verb("modify", "membership", "Change what a node is for"),
        Verb(
            "try-accelerator",
            "info",
            "Look again whether KVM works, by booting a kernel; all nodes if none is "
            "named",
        ),
        Verb("remove", "membership", "Remove an empty node"),
        Verb(
            "migrate",
            "moving",
            "Migrate every instance of a node, without stopping them",
        ),
        Verb(
            "failover", "moving", "Stop every instance of a node and start it elsewhere"
        ),
        Verb("evacuate", "moving", "Empty a node, whatever it takes"),
        Verb("list-storage", "storage", "List what nodes keep disks on, with its room"),
        Verb(
            "volumes",
            "storage",
            "List the logical volumes of nodes, and whose they are",
        ),
        Verb(
            "modify-storage",
            "storage",
            "Say whether new volumes may lie on a physical volume",
        ),
        Verb(
            "repair-storage",
            "storage",
            "Take devices that are gone out of a volume group",
        ),
        Verb(
            "list-drbd",
            "storage",
            "List the mirrored devices of a node, and whose disks they are",
        ),
        Verb("powercycle", "power", "Reboot a node at once; its guests die with it"),
        Verb(
            "shutdown-orphan",
            "power",
            "Power down a guest that the configuration does not know",
        ),
        Verb(
            "power",
            "power",
            "Switch the power of nodes by their out-of-band programs, or ask for it",
        ),
        Verb(
            "health",
            "power",
            "Say how nodes are, as their out-of-band programs tell it",
        ),
        Verb(
            "restricted-command",
            "power",
            "Run a script that nodes' administrators put into restricted-commands",
        ),
        *tagging("node"),
    ),
)

main = partial(run, PROGRAM)
