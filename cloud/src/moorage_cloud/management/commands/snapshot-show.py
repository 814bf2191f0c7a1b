# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage snapshot-show``: what is on record of a snapshot."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import snapshot_facts


class Command(CloudCommand):
    """Show a snapshot."""

    help = "Show what is on record of a snapshot."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("snapshot_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print it."""
        snapshot = find.snapshot(options["snapshot_id"])
        title = f"State of snapshot {snapshot.pk} in DB"
        self.describe(title, snapshot_facts(snapshot))
