# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster: the cluster as a whole."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import tagging

PROGRAM = Program(
    "gnt-cluster",
    "make, look at, check and change the cluster",
    __name__,
    (
        Verb("init", "life", "Make a cluster whose first node is this machine"),
        Verb("info", "info", "Show the cluster's settings", ("show",)),
        Verb("verify", "verify", "Check the whole cluster; fail if anything is wrong"),
        Verb(
            "verify-disks",
            "verify",
            "Attach the disks of instances that should have them, where a node lost "
            "them",
        ),
        Verb(
            "repair-disk-sizes",
            "verify",
            "Correct the recorded sizes of disks whose devices have another one",
        ),
        Verb("modify", "settings", "Change the cluster's settings"),
        Verb(
            "renew-crypto",
            "renew_crypto",
            "Renew keys and certificates, while guests run",
        ),
        *tagging("cluster"),
        Verb(
            "search-tags",
            "tagging",
            "Show which objects have a tag that a pattern fits",
        ),
        Verb("version", "info", "Show versions of software and interfaces"),
        Verb("getmaster", "info", "Show which node is the master"),
        Verb(
            "master-failover",
            "failover",
            "Make this node, a master candidate, the master",
        ),
        Verb(
            "activate-master-ip",
            "upkeep",
            "Have the address that moves with the master set on its node",
        ),
        Verb(
            "deactivate-master-ip",
            "upkeep",
            "Take the address that moves with the master away, until it is activated",
        ),
        Verb("master-ping", "failover", "Say whether the master answers"),
        Verb(
            "upgrade",
            "upgrade",
            "Say which versions run where, and what is left to upgrade",
        ),
        Verb(
            "queue",
            "upkeep",
            "Close the queue for new jobs, open it, or show which it is",
        ),
        Verb(
            "watcher",
            "upkeep",
            "Let the watcher start nothing for a while, go on, or say which it is",
        ),
        Verb(
            "copyfile",
            "orders",
            "Write a file on nodes, into places that their administrators have listed",
        ),
        Verb(
            "command",
            "orders",
            "Run a command on nodes whose administrators allow any",
        ),
        Verb("rename", "upkeep", "Give the cluster another name"),
        Verb(
            "redist-conf",
            "upkeep",
            "Accepted, as in Ganeti: master candidates get each change when it is made",
        ),
        Verb(
            "show-ispecs-cmd",
            "upkeep",
            "Print the command that would make the instance policy as it is",
        ),
        Verb(
            "epo",
            "upkeep",
            "Shut instances down and switch nodes off before a power cut, or on again",
        ),
        Verb("destroy", "life", "End the cluster; this cannot be taken back"),
    ),
)

main = partial(run, PROGRAM)
