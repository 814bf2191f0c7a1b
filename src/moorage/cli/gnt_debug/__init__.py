# SPDX-License-Identifier: BSD-2-Clause
"""gnt-debug: looking behind the scenes."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run

PROGRAM = Program(
    "gnt-debug",
    "look behind the scenes",
    __name__,
    (
        Verb("locks", "commands", "List what jobs hold and wait for"),
        Verb("delay", "commands", "Submit a job that does nothing for a while"),
        Verb(
            "iallocator",
            "commands",
            "Show what an allocator reads, or what it answers",
            ("allocator",),
        ),
        Verb("submit-job", "commands", "Submit jobs from files of opcodes"),
        Verb(
            "test-jobqueue",
            "commands",
            "Try the queue: jobs that wait for each other, and one that is cancelled",
        ),
    ),
    absent={
        "metad": "no guest asks for metadata",
        "test-osparams": "gnt-os diagnose and gnt-instance add check parameters",
        "wconfd": "one process keeps the configuration: the master",
    },
)

main = partial(run, PROGRAM)
