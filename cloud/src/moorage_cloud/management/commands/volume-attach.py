# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-attach``: attach a volume to a server."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import attach


class Command(CloudCommand):
    """Attach a volume."""

    help = "Attach a volume to a server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one, and where to."""
        parser.add_argument("--server", required=True, help="its ID or uuid")
        parser.add_argument("volume_id", help="its ID or uuid")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        volume = find.volume(options["volume_id"])
        attach(ADMIN, volume, find.server(options["server"]))
        if options["wait"]:
            waiting.wait(self, volume)
        self.tell(f"Successfully attached volume <{volume.pk}>")
