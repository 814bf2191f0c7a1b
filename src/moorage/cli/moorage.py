# SPDX-License-Identifier: BSD-2-Clause
"""moorage: the daemons, and scratch clusters to try things on."""

import sys
from functools import partial

from .declaration import Program, Verb
from .main import run

PROGRAM = Program(
    "moorage",
    "The daemons of Moorage, and scratch clusters to try things on.",
    "moorage.cli",
    (
        Verb("up", "scratch", "start a scratch cluster in a directory"),
        Verb("env", "scratch", "print the environment of a scratch cluster"),
        Verb("down", "scratch", "end a scratch cluster"),
        Verb("tour", "scratch", "show what Moorage is for, step by step"),
        Verb("agent", "daemon", "run the agent of a node"),
        Verb(
            "watcher",
            "watcher",
            "bring back what should run; a timer runs this every five minutes",
        ),
        Verb("master", "daemon", "run, start or stop the master, or look at its store"),
        Verb("events", "events", "print what happens in the cluster, as it happens"),
        Verb(
            "backup",
            "state_backup",
            "write the cluster's state and keys into a file",
        ),
        Verb("restore", "state_backup", "put the state and keys of a backup back"),
    ),
)

main = partial(run, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
