# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-modify``: other words on record, or a status set right."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.errors import BadRequest
from moorage_cloud.management import find
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.management.words import flag
from moorage_cloud.verbs import reset_status, update


class Command(CloudCommand):
    """Change what is on record of a volume."""

    help = (
        "Change what is on record of a volume. A status can be set where it says what "
        "is so: of a volume on which nothing is under way."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is to be different."""
        parser.add_argument("volume_id", help="its ID or uuid")
        for word in ("name", "description"):
            parser.add_argument(f"--{word}")
        parser.add_argument(
            "--delete-on-termination",
            type=flag,
            metavar="True|False",
            help="whether it is deleted with its server",
        )
        parser.add_argument("--status", help="available, in-use, error, error_deleting")

    def go(self, options: Mapping[str, Any]) -> None:
        """Change it."""
        volume = find.volume(options["volume_id"])
        names = ("name", "description", "delete_on_termination")
        given = {name: options[name] for name in names if options[name] is not None}
        if not given and options["status"] is None:
            raise BadRequest("say what is to be different")
        if options["status"] is not None:
            reset_status(ADMIN, volume, options["status"])
        update(volume, **given)
        self.tell(f"Successfully updated volume <{volume.pk}>")
