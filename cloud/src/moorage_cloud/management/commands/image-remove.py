# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage image-remove``: no more volumes are made from an image."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.verbs import remove_image


class Command(CloudCommand):
    """Take an image off record."""

    help = "Take an image off record; its data stays in the storage."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("image_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        image = find.image(options["image_id"])
        remove_image(image)
        self.tell(f"Image {image.pk} is off record; its data is where it was")
