# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage server-inspect``: a server on record, and on its cluster."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.clusters import Cluster
from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import server_facts, state
from moorage_cloud.models import Attachment, Server
from moorage_cloud.work import Doors

VOLUMES = ("ID", "Name", "Index", "Size", "Template", "Provider", "Status", "Source")
DISKS = ("Name", "Size")


class Command(CloudCommand):
    """Inspect a server."""

    help = "Show what is on record of a server, and what its cluster says of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("server_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print both."""
        server = find.server(options["server_id"])
        self.describe(f"State of Server {server.pk} in DB", server_facts(server))
        places = server.attachments.select_related("volume__volume_type")
        self._title(f"Volumes of Server {server.pk}")
        self.show([_row(one) for one in places], VOLUMES, "pretty")
        self.tell("")
        doors = Doors()
        try:
            self._inspect(server, doors(server.backend))
        finally:
            doors.close()

    def _inspect(self, server: Server, cluster: Cluster) -> None:
        known = {one.name: one for one in cluster.instances()}
        if server.instance not in known:
            self.tell(f"cluster {server.backend} has no instance {server.instance}.")
            return
        status = {"name": server.instance, "status": known[server.instance].status}
        self.describe(f"State of Server {server.pk} in Ganeti", status)
        disks = [one for one in cluster.disks() if one.instance == server.instance]
        self._title(f"Disks of Server {server.pk} in Ganeti")
        rows = [{"Name": one.name, "Size": one.size} for one in disks]
        self.show(rows, DISKS, "pretty")

    def _title(self, title: str) -> None:
        self.tell(title)
        self.tell("-" * len(title))


def _row(place: Attachment) -> dict[str, object]:
    volume = place.volume
    kind = volume.volume_type
    return {
        "ID": volume.pk,
        "Name": volume.name,
        "Index": place.index,
        "Size": volume.size,
        "Template": kind.template,
        "Provider": kind.provider,
        "Status": state(volume),
        "Source": volume.source,
    }
