# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-create``: a volume for somebody."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from moorage_cloud.management import find, owners, waiting
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import facts
from moorage_cloud.verbs import NewVolume, create
from moorage_cloud.verbs.caller import volume_type


class Command(CloudCommand):
    """Make a volume."""

    help = "Make a volume."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what it is to be."""
        parser.add_argument("--size", type=int, required=True, help="GiB")
        parser.add_argument("--name", default="")
        parser.add_argument("--description", default="")
        owners.add_arguments(parser)
        parser.add_argument("--volume-type", help="without it, the default type")
        parser.add_argument("--server", help="one that it is attached to at once")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Make it."""
        who = owners.owner(options)
        server = find.server(options["server"]) if options["server"] else None
        new = NewVolume(
            size=options["size"],
            volume_type=volume_type(
                structs.replace(who, admin=True),
                options["volume_type"],
            ),
            name=options["name"],
            description=options["description"],
            server=server,
        )
        volume = create(who, new)
        self.tell(f"Created volume '{volume.pk}' in DB:")
        if server and options["wait"]:
            waiting.wait(self, volume)
        volume = find.volume(str(volume.pk))
        self.describe(f"State of volume {volume.pk} in DB", facts(volume))
