# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage backend-update-status``: what clusters can, asked anew."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from moorage_cloud.clusters import ClusterRefused, ClusterSilent
from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.models import Backend
from moorage_cloud.work import Doors


class Command(CloudCommand):
    """Ask clusters what they can, and keep it."""

    help = "Ask clusters what they can do, after an upgrade of theirs, and keep it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which of them."""
        parser.add_argument("--backend-id", help="one cluster alone; else all")

    def go(self, options: Mapping[str, Any]) -> None:
        """Ask each; one that does not answer hinders no other."""
        named = options["backend_id"]
        known = Backend.objects.filter(offline=False)
        failed = False
        doors = Doors()
        try:
            for backend in [find.backend(named)] if named else known:
                try:
                    backend.features = sorted(doors(backend).features())
                except (ClusterRefused, ClusterSilent) as error:
                    failed = True
                    self.tell(f"Backend {backend}: {error}")
                    continue
                backend.save(update_fields=["features", "updated"])
                self.tell(f"Backend {backend}: {', '.join(backend.features)}")
        finally:
            doors.close()
        if failed:
            raise CommandError("not every cluster answered")
