# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-inspect``: a volume on record, and on its cluster."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import facts
from moorage_cloud.work import Doors


class Command(CloudCommand):
    """Inspect a volume."""

    help = "Show what is on record of a volume, and what its cluster says of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print both."""
        volume = find.volume(options["volume_id"])
        self.describe(f"State of volume {volume.pk} in DB", facts(volume))
        server = volume.server
        if server is None:
            self.tell("volume is not attached to any instance.")
            return
        doors = Doors()
        try:
            disk = doors(server.backend).disk(volume.backend_volume_uuid)
        finally:
            doors.close()
        if disk is None:
            self.tell(f"cluster {server.backend} has no such disk.")
            return
        told = {
            "name": disk.name,
            "size": disk.size,
            "uuid": disk.uuid,
            "index": disk.slot,
            "instance": disk.instance,
        }
        self.describe(f"State of volume {volume.pk} in Ganeti", told)
