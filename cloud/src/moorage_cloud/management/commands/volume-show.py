# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-show``: what is on record of a volume."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import facts


class Command(CloudCommand):
    """Show a volume."""

    help = "Show what is on record of a volume."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print it."""
        volume = find.volume(options["volume_id"])
        self.describe(f"State of volume {volume.pk} in DB", facts(volume))
