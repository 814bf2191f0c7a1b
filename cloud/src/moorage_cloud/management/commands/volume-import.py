# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-import``: data that is in a storage becomes a volume."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from moorage_cloud.management import find, owners, waiting
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import facts
from moorage_cloud.verbs import NewVolume, import_volume
from moorage_cloud.verbs.caller import volume_type


class Command(CloudCommand):
    """Put what a storage has on record, and have a cluster look for it."""

    help = (
        "Put data that a storage has on record as somebody's volume. A cluster looks "
        "for it: when it is there the volume is available, else it stays in ERROR. No "
        "cluster may have it as a disk."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what it is."""
        parser.add_argument("backend_volume", help="its name in the storage")
        parser.add_argument("--size", type=int, required=True, help="GiB that it has")
        parser.add_argument("--name", default="")
        parser.add_argument("--description", default="")
        owners.add_arguments(parser)
        parser.add_argument("--volume-type", help="without it, the default type")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        who = owners.owner(options)
        new = NewVolume(
            size=options["size"],
            volume_type=volume_type(
                structs.replace(who, admin=True), options["volume_type"]
            ),
            name=options["name"],
            description=options["description"],
        )
        volume = import_volume(who, new, options["backend_volume"])
        self.tell(f"Created volume '{volume.pk}' in DB:")
        if options["wait"]:
            waiting.wait(self, volume)
        found = find.volume(str(volume.pk))
        self.describe(f"State of volume {found.pk} in DB", facts(found))
