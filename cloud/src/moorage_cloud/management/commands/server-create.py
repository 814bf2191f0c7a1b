# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage server-create``: an instance that is there becomes a server."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.management import find, owners
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import server_facts
from moorage_cloud.models import Server
from moorage_cloud.work import Doors


class Command(CloudCommand):
    """Take an instance of a cluster for a server of somebody."""

    help = "Let an instance of a cluster be a server, to which volumes can be attached."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which instance, and whose it is to be."""
        parser.add_argument("--backend-id", required=True)
        parser.add_argument("--instance", required=True, help="its name there")
        parser.add_argument("--name", help="else the instance's")
        owners.add_arguments(parser, required=False)
        parser.add_argument(
            "--helper", action="store_true", help="one that only lends its cluster"
        )

    def go(self, options: Mapping[str, Any]) -> None:
        """Put it on record."""
        backend = find.backend(options["backend_id"])
        name, who = options["instance"], owners.owner(options)
        doors = Doors()
        try:
            known = {one.name: one for one in doors(backend).instances()}
        finally:
            doors.close()
        if name not in known:
            raise NotFound(f"cluster {backend} has no instance '{name}'")
        runs = known[name].status in {"running", "paused"}
        if options["helper"] and runs:
            raise BadRequest(f"a helper is stopped, and instance {name} runs")
        if Server.objects.filter(backend=backend, instance=name, deleted=False):
            raise BadRequest(
                f"instance {name} of cluster {backend} is a server already"
            )
        server = Server.objects.create(
            name=options["name"] or name,
            userid=who.user,
            project=who.project,
            backend=backend,
            instance=name,
            helper=options["helper"],
            operstate="STARTED" if runs else "STOPPED",
        )
        self.tell(f"Created server '{server.pk}' in DB:")
        self.describe(f"State of Server {server.pk} in DB", server_facts(server))
