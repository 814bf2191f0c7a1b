# SPDX-License-Identifier: BSD-2-Clause
"""gnt-node: the machines of the cluster, and emptying them."""

from functools import partial

from moorage.cli import tags
from moorage.cli.command import Program
from moorage.cli.main import run

from . import info, membership, moving, power, storage

PROGRAM = Program(
    "gnt-node",
    "add, list, empty and remove nodes",
    (
        membership.ADD,
        *info.LISTING.commands("gnt-node", "offline or drained"),
        info.INFO,
        membership.MODIFY,
        info.TRY_ACCELERATOR,
        membership.REMOVE,
        *moving.COMMANDS,
        *storage.COMMANDS,
        *power.COMMANDS,
        *tags.commands("gnt-node"),
    ),
)

main = partial(run, PROGRAM)
