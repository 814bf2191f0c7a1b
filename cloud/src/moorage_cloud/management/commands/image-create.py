# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage image-create``: what is in a storage is what volumes are made from."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.words import pairs
from moorage_cloud.verbs import NewImage, add_image


class Command(CloudCommand):
    """Make an image."""

    help = (
        "Make an image of raw data that is in a storage already, and that nobody "
        "writes to."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what it is, and where."""
        parser.add_argument("-n", "--name", required=True)
        parser.add_argument(
            "--volume-type", required=True, help="a type whose storage has it"
        )
        parser.add_argument("--data", required=True, help="what it is called there")
        parser.add_argument("--size", type=int, required=True, help="GiB, rounded up")
        parser.add_argument("--properties", default="", help="KEY=VALUE,…")

    def go(self, options: Mapping[str, Any]) -> None:
        """Make it."""
        made = add_image(
            NewImage(
                name=options["name"],
                volume_type=find.volume_type(options["volume_type"]),
                data=options["data"],
                size=options["size"],
                properties=dict(pairs(options["properties"])),
            )
        )
        self.tell(f"Created image '{made.name}' with ID {made.pk} ({made.uuid})")
