# SPDX-License-Identifier: BSD-2-Clause
"""gnt-os: what can be installed on an instance."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run

PROGRAM = Program(
    "gnt-os",
    "look at the operating systems that can be installed",
    __name__,
    (
        Verb(
            "list", "commands", "List what can be installed: each OS with its variants"
        ),
        Verb(
            "info",
            "commands",
            "Show variants and parameters of each OS, and whether it is offered",
        ),
        Verb(
            "modify",
            "commands",
            "Change what instances of an OS get, and whether it is offered",
        ),
        Verb(
            "diagnose",
            "commands",
            "Say of each OS where it is, and what is wrong with it",
        ),
    ),
)

main = partial(run, PROGRAM)
