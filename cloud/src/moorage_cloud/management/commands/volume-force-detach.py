# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-force-detach``: take a volume away whatever its state says."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import force_detach


class Command(CloudCommand):
    """Take a volume from its server by force."""

    help = (
        "Take a volume from its server whatever its state says. From a cluster that "
        "does not answer it is taken only after 'backend-modify --offline' has said "
        "that it is off."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_id", help="its ID or uuid")
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        volume = find.volume(options["volume_id"])
        question = f"Are you sure you want to take volume {volume.pk} by force ?"
        if not self.sure(question, options):
            return
        force_detach(ADMIN, volume)
        place = find.volume(str(volume.pk)).place
        if place is None:
            self.tell(f"Volume <{volume.pk}> is taken from its server")
        else:
            backend = place.server.backend
            self.tell(f"Cluster {backend} is asked to take volume <{volume.pk}> off")
