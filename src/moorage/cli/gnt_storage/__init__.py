# SPDX-License-Identifier: BSD-2-Clause
"""gnt-storage: where disks can be, and who drives it."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import below, listing, tagging

PROGRAM = Program(
    "gnt-storage",
    "look after storage: its pools, its providers, what is in it",
    __name__,
    (
        Verb(
            "diagnose",
            "providers",
            "Say of providers, disk templates and pools where they are, and what is "
            "wrong",
        ),
        Verb(
            "info",
            "providers",
            "Say of providers, disk templates and pools who may use them, and how",
            ("show",),
        ),
        Verb(
            "pool add", "pools", "Make a storage pool of a disk template or a provider"
        ),
        *below("pool", "pools", listing("pools", "pool")),
        Verb("pool info", "pools", "Show all about storage pools", ("pool show",)),
        Verb(
            "pool modify",
            "pools",
            "Change what a storage pool presets for disks to come",
        ),
        Verb("pool remove", "pools", "Remove a storage pool that no disk is in"),
        Verb(
            "pool connect",
            "pools",
            "Let the disks of a storage pool be used in node groups",
        ),
        Verb(
            "pool disconnect",
            "pools",
            "Let no disk of a storage pool be used in node groups any more",
        ),
        *below("pool", "pools", tagging("pool")),
        Verb(
            "certify",
            "certify",
            "Hold a provider to its contract, with volumes that it makes and removes",
        ),
        Verb(
            "reconcile",
            "reconcile",
            "Compare what is stored with what the cluster knows; show a plan, or do it",
        ),
    ),
)

main = partial(run, PROGRAM)
