# SPDX-License-Identifier: BSD-2-Clause
"""gnt-storage: where disks can be, and who drives it."""

from functools import partial

from moorage.cli.command import Program
from moorage.cli.main import run

from . import certify, pools, providers, reconcile

PROGRAM = Program(
    "gnt-storage",
    "look after storage: its pools, its providers, what is in it",
    (*providers.COMMANDS, *pools.COMMANDS, *certify.COMMANDS, reconcile.COMMAND),
)

main = partial(run, PROGRAM)
