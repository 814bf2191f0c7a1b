# SPDX-License-Identifier: BSD-2-Clause
"""gnt-job: what the cluster is doing, did and will do."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing

PROGRAM = Program(
    "gnt-job",
    "look at jobs, follow them, cancel them",
    __name__,
    (
        *listing("commands", "job"),
        Verb(
            "info",
            "commands",
            "Show all about jobs: opcodes, results, errors, log",
            ("show",),
        ),
        Verb(
            "watch", "commands", "Follow a job: its log, and its progress at a terminal"
        ),
        Verb(
            "wait",
            "commands",
            "Wait until jobs have ended; fail if one did not succeed",
        ),
        Verb(
            "cancel", "commands", "Cancel jobs; what a running one has begun is undone"
        ),
        Verb("archive", "commands", "Put jobs away that have ended"),
        Verb(
            "autoarchive",
            "commands",
            "Put jobs away that ended longer ago than this: 6h, 2d; or all",
        ),
        Verb("change-priority", "commands", "Let jobs run earlier or later"),
    ),
)

main = partial(run, PROGRAM)
