# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage legacy-names-migrate``: volumes keep the names that storage knows."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.clusters import Cluster
from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.models import Backend, Server
from moorage_cloud.work import Doors, Plan, carry_out, plans, rename


class Command(CloudCommand):
    """Write down the names of volumes that an earlier version made."""

    help = (
        "Let the volumes of each server have, on record and on its cluster, the name "
        "that their storage knows them by since an earlier version made them. Once, "
        "before the provider that goes by names is there, and without the API."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take of which clusters, and how much is to be done."""
        parser.add_argument("--backend-id", help="one cluster alone; else all")
        parser.add_argument("--dry-run", action="store_true", help="only tell")
        parser.add_argument(
            "--ganeti-dry-run",
            action="store_true",
            help="have the clusters say whether they would; nothing is changed",
        )
        parser.add_argument("--debug", action="store_true", help="tell of each volume")
        parser.add_argument("--restore", action="store_true", help="take it back")

    def go(self, options: Mapping[str, Any]) -> None:
        """Look at all clusters, and only then begin."""
        named, restore = options["backend_id"], options["restore"]
        backends = [find.backend(named)] if named else list(Backend.objects.all())
        connect = Doors()
        try:
            doors = {backend.pk: connect(backend) for backend in backends}
            self._skipped(backends, restore=restore)
            found = plans(backends, doors, restore=restore)
            for number, plan in enumerate(found, 1):
                server, count = plan.server, len(plan.namings)
                self.tell(
                    f"({number}/{len(found)}) Server {server.pk} on {server.backend}: "
                    f"{count} volume{'' if count == 1 else 's'}"
                )
                self._treat(plan, doors[server.backend_id], options)
        finally:
            connect.close()
        dry = options["dry_run"] or options["ganeti_dry_run"]
        self.tell("Nothing was changed" if dry else "Done")

    def _skipped(self, backends: list[Backend], *, restore: bool) -> None:
        """Tell of servers with which nothing is to be done."""
        known = Server.objects.filter(
            backend__in=backends, deleted=False, helper=False, names_taken=not restore
        )
        why = "has no names to take back" if restore else "has its names already"
        for one in known:
            self.tell(f"Server {one.pk} {why}: skipped")

    def _treat(self, plan: Plan, door: Cluster, options: Mapping[str, Any]) -> None:
        if options["debug"]:
            for one in plan.namings:
                self.tell(
                    f"  volume {one.volume.pk}: disk {one.disk.slot} "
                    f"'{one.disk.name}' becomes '{one.name}'"
                )
        if options["ganeti_dry_run"]:
            rename(plan, door, dry_run=True)
        elif not options["dry_run"]:
            carry_out(plan, door, restore=options["restore"])
