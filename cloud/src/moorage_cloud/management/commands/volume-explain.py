# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-explain``: what keeps a volume from a server."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.verbs import hindrances


class Command(CloudCommand):
    """Explain why a volume cannot be attached."""

    help = (
        "Tell everything that keeps a volume from a server, each with the smallest "
        "change that would help; nothing is changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one, and where to."""
        parser.add_argument("--server", required=True, help="its ID or uuid")
        parser.add_argument("volume_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print it."""
        volume = find.volume(options["volume_id"])
        server = find.server(options["server"])
        found = hindrances(volume, server)
        place = volume.place
        if not found and place and place.server_id == server.pk:
            self.tell(f"server {server.pk} has volume {volume.pk} already.")
        elif not found:
            self.tell(f"volume {volume.pk} can be attached to server {server.pk}.")
        for one in found:
            self.tell(f"{'waits' if one.waits else 'refused'}: {one.why}")
            self.tell(f"  {one.change}")
