# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-create``: a volume for somebody."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from moorage_cloud.errors import BadRequest
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
        parser.add_argument("--size", type=int, help="GiB; of a copy, the original's")
        parser.add_argument("--source", help="snapshot:ID, volume:ID or image:ID")
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
        source, kind = options["source"], options["volume_type"]
        original = find.original(source) if source else None
        size = options["size"] or (original.size if original else None)
        if size is None:
            raise BadRequest("a volume that is no copy needs a --size")
        if original and not kind:
            typed = original.volume_type
        else:
            typed = volume_type(structs.replace(who, admin=True), kind)
        new = NewVolume(
            size=size,
            volume_type=typed,
            name=options["name"],
            description=options["description"],
            server=server,
            original=original,
        )
        volume = create(who, new)
        self.tell(f"Created volume '{volume.pk}' in DB:")
        if (server or original) and options["wait"]:
            waiting.wait(self, volume)
        volume = find.volume(str(volume.pk))
        self.describe(f"State of volume {volume.pk} in DB", facts(volume))
