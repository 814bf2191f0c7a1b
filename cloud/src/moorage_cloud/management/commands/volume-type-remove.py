# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-type-remove``: a type that no volume has goes."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.verbs import delete_type


class Command(CloudCommand):
    """Delete a type."""

    help = "Delete a volume type; one that a volume has stays, and so does the default."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_type", help="its ID or name")

    def go(self, options: Mapping[str, Any]) -> None:
        """Delete it."""
        kind = find.volume_type(options["volume_type"])
        delete_type(kind)
        self.tell(f"Successfully removed volume type '{kind.name}'")
