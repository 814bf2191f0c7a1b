# SPDX-License-Identifier: BSD-2-Clause
"""Disk templates: pure functions from facts to commands."""

from .base import (
    Birth,
    Can,
    Capabilities,
    Command,
    Finding,
    Mirror,
    Outcome,
    Output,
    Provider,
    Reach,
    Site,
    Steps,
    Template,
    Where,
    commands_of,
)

__all__ = [
    "Birth",
    "Can",
    "Capabilities",
    "Command",
    "Finding",
    "Mirror",
    "Outcome",
    "Output",
    "Provider",
    "Reach",
    "Site",
    "Steps",
    "Template",
    "Where",
    "commands_of",
]
