# SPDX-License-Identifier: BSD-2-Clause
"""gnt-storage: where disks can be, and who drives it."""

from moorage.cli.command import Program
from moorage.cli.main import run

from . import certify, providers

PROGRAM = Program(
    "gnt-storage",
    "look at the ExtStorage providers, and certify them",
    (*providers.COMMANDS, *certify.COMMANDS),
)


def main() -> int:
    """Run gnt-storage."""
    return run(PROGRAM)
