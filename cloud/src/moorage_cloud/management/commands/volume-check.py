# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-check``: whether the data of a volume in error is there."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import check_data, without_data


class Command(CloudCommand):
    """Look for a volume's data, and set its state right."""

    help = (
        "Have a cluster look for the data of a volume in error: if it is there, the "
        "volume is available. If you know that there is none, --no-data says so, and "
        "the next attach makes it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one, and what is known of it."""
        parser.add_argument("volume_id", help="its ID or uuid")
        parser.add_argument("--no-data", action="store_true")
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        volume = find.volume(options["volume_id"])
        if options["no_data"]:
            question = f"Are you sure that there is no data of volume {volume.pk} ?"
            if self.sure(question, options):
                without_data(ADMIN, volume)
                self.tell(f"Volume {volume.pk} is available, and has no data yet")
            return
        check_data(ADMIN, volume)
        if options["wait"]:
            waiting.wait(self, volume)
        else:
            self.tell(f"The data of volume {volume.pk} is being looked for")
