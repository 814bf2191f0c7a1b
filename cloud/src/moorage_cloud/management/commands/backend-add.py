# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage backend-add``: let the service use a cluster."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.errors import BadRequest
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.models import Backend, StorageDomain
from moorage_cloud.work import Doors

NEEDED = {
    "moorage-keys": "requests that make one job, however often they come",
    "moorage-events": "a feed of what happens",
}
"""What the service cannot do without, and why."""


class Command(CloudCommand):
    """Add a cluster; it is asked for what it can first."""

    help = "Let the service use a cluster."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where its door is, and what opens it."""
        parser.add_argument("--clustername", required=True, help="what people call it")
        parser.add_argument("--address", default="", help="host of its door")
        parser.add_argument("--port", type=int, default=5080)
        parser.add_argument("--user", required=True, help="of the door: role adopt")
        parser.add_argument("--pass", dest="password", required=True)
        parser.add_argument("--ca", default="", help="file of the door's authority")
        parser.add_argument(
            "--domain",
            action="append",
            default=[],
            help="storage that it sees, by a name of your own; several are possible",
        )
        parser.add_argument(
            "--no-check", action="store_true", help="do not ask it what it can"
        )

    def go(self, options: Mapping[str, Any]) -> None:
        """Add it."""
        name = options["clustername"]
        if Backend.objects.filter(clustername=name).exists():
            raise BadRequest(f"there is a backend '{name}' already")
        backend = Backend(
            clustername=name,
            address=options["address"],
            port=options["port"],
            username=options["user"],
            password=options["password"],
            ca=options["ca"],
        )
        if not options["no_check"]:
            _ask(backend)
        backend.save()
        for one in options["domain"]:
            domain, _ = StorageDomain.objects.get_or_create(name=one)
            domain.backends.add(backend)
        self.tell(f"Successfully added backend '{name}' with ID {backend.pk}")
        if not backend.adopts:
            self.tell(
                "It cannot have a disk without an instance: to delete detached volumes "
                "it needs a stopped server that lends itself (server-create --helper)"
            )


def _ask(backend: Backend) -> None:
    """Keep who a cluster is, and what it can."""
    doors = Doors()
    try:
        cluster = doors(backend)
        found, backend.uuid = cluster.features(), cluster.uuid()
    finally:
        doors.close()
    for feature, what in NEEDED.items():
        if feature not in found:
            raise BadRequest(
                f"cluster {backend} lacks '{feature}', which the service needs: {what}"
            )
    backend.features = sorted(found)
