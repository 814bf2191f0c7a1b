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
        Verb("audit list", "audit", "print who had what changed"),
        Verb("audit check", "audit", "say whether anybody changed the audit log"),
        Verb("audit save", "audit", "add what is new in the audit log to a file"),
        Verb(
            "backup", "state_backup", "write the cluster's state and keys into a file"
        ),
        Verb("restore", "state_backup", "put the state and keys of a backup back"),
        Verb("store move", "store_move", "move the state to etcd, or to SQLite"),
        Verb(
            "export-config",
            "export_config",
            "write the cluster's configuration as a file of Ganeti's",
        ),
        Verb(
            "import-config",
            "import_config",
            "make a file of Ganeti's the cluster's configuration",
        ),
        Verb(
            "adopt-guests",
            "adopt_guests",
            "take over the guests that Ganeti started, while they run",
        ),
        Verb("rapi run", "rapi", "serve RAPI, the door for other machines, over HTTPS"),
        Verb("rapi certificate", "rapi", "give the door a certificate"),
        Verb("rapi password", "rapi", "print a line for the door's file of users"),
        Verb("rapi add-token", "rapi", "make a token that opens the door"),
        Verb("rapi list-tokens", "rapi", "show whom tokens are of"),
        Verb("rapi remove-token", "rapi", "revoke a token"),
    ),
)

main = partial(run, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
