# SPDX-License-Identifier: BSD-2-Clause
"""gnt-storage: where disks can be, and who drives it."""

from moorage.cli.command import Program
from moorage.cli.main import run

from . import providers, reconcile

PROGRAM = Program(
    "gnt-storage",
    "look at storage, and compare it with what the cluster knows",
    (*providers.COMMANDS, reconcile.COMMAND),
)


def main() -> int:
    """Run gnt-storage."""
    return run(PROGRAM)
