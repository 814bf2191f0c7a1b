# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-type-show``: what is on record of a type."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import type_facts


class Command(CloudCommand):
    """Show a type."""

    help = "Show what is on record of a volume type."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_type", help="its ID or name")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print it."""
        kind = find.volume_type(options["volume_type"])
        self.describe(f"State of volume type {kind.pk} in DB", type_facts(kind))
