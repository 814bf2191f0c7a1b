# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-remove``: delete a volume and its data."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import delete


class Command(CloudCommand):
    """Delete a volume and its data."""

    help = "Delete a volume and its data."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_id", help="its ID or uuid")
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        volume = find.volume(options["volume_id"])
        question = f"Are you sure you want to remove volume {volume.pk} ?"
        if volume.server:
            question = f"Server {volume.server.name} has volume {volume.pk}. {question}"
        if not self.sure(question, options):
            return
        delete(ADMIN, volume)
        if options["wait"]:
            waiting.wait(self, volume)
        volume.refresh_from_db(fields=["deleted"])
        if volume.deleted:
            self.tell(f"Successfully removed volume <{volume.pk}>")
        else:
            self.tell(f"Volume {volume.pk} is to be removed")
