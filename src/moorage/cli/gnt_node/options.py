# SPDX-License-Identifier: BSD-2-Clause
"""What several commands on nodes take."""

from moorage.cli.command import Operand, Option
from moorage.cli.options import refused, truth

NODE = (Operand("NODE"),)
STATES = (
    refused("--hypervisor-state", "nodes say what they have", "NAME:KEY=VALUE,..."),
    refused("--disk-state", "nodes say what they have", "NAME:KEY=VALUE,..."),
)


def claim(flags: tuple[str, ...], text: str) -> Option:
    """Return an option that takes yes or no; yes when it is given alone."""
    return Option(flags, text, "yes|no", truth, choices=("yes", "no"), bare="yes")
