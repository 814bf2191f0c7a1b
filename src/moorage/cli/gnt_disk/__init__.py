# SPDX-License-Identifier: BSD-2-Clause
"""gnt-disk: disks as citizens of their own, with or without an instance."""

from functools import partial

from moorage.cli import tags
from moorage.cli.command import Program
from moorage.cli.main import run

from . import add, adopt, attach, change, convert, info, remove, story

PROGRAM = Program(
    "gnt-disk",
    "make, attach, move, grow and remove disks",
    (
        add.COMMAND,
        adopt.COMMAND,
        *info.LISTING.commands("gnt-disk", 'status == "detached"'),
        *info.COMMANDS,
        story.COMMAND,
        *attach.COMMANDS,
        *change.COMMANDS,
        *convert.COMMANDS,
        *remove.COMMANDS,
        *tags.commands("gnt-disk"),
    ),
)

main = partial(run, PROGRAM)
