# SPDX-License-Identifier: BSD-2-Clause
"""gnt-disk: disks as citizens of their own, with or without an instance."""

from functools import partial

from moorage.cli import tags
from moorage.cli.command import Program
from moorage.cli.main import run

from . import add, change, convert, info, story

PROGRAM = Program(
    "gnt-disk",
    "make, attach, move, grow and remove disks",
    (
        add.ADD,
        add.ADOPT,
        *info.LISTING.commands("gnt-disk", 'status == "detached"'),
        *info.COMMANDS,
        story.COMMAND,
        *change.COMMANDS,
        *convert.COMMANDS,
        *change.REMOVAL,
        *tags.commands("gnt-disk"),
    ),
)

main = partial(run, PROGRAM)
