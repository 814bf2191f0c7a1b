# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage backend-update-status``: what clusters can, asked anew."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from moorage_cloud.clusters import AnotherCluster, ClusterRefused, ClusterSilent
from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.models import Backend
from moorage_cloud.work import Doors, forget_jobs

_ASKED = ("uuid", "stranger", "features")


class Command(CloudCommand):
    """Ask clusters what they can, and keep it."""

    help = (
        "Ask clusters who they are and what they can do, after an upgrade of theirs, "
        "and keep it. One that was made anew is another cluster: see --adopt-new."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which of them."""
        parser.add_argument("--backend-id", help="one cluster alone; else all")
        parser.add_argument(
            "--adopt-new",
            action="store_true",
            help="take whoever answers for the cluster; what was under way there is "
            "judged by what there is. With --backend-id",
        )

    def go(self, options: Mapping[str, Any]) -> None:
        """Ask each; one that does not answer hinders no other."""
        named = options["backend_id"]
        if options["adopt_new"] and not named:
            raise CommandError("--adopt-new is for one cluster: --backend-id")
        known = Backend.objects.filter(offline=False)
        failed = False
        doors = Doors()
        try:
            for backend in [find.backend(named)] if named else known:
                try:
                    _ask(backend, doors, adopt=options["adopt_new"])
                except (ClusterRefused, ClusterSilent) as error:
                    failed = True
                    self.tell(f"Backend {backend}: {error}")
                    continue
                backend.save(update_fields=[*_ASKED, "updated"])
                self.tell(f"Backend {backend}: {', '.join(backend.features)}")
        finally:
            doors.close()
        if failed:
            raise CommandError("not every cluster answered")


def _ask(backend: Backend, doors: Doors, *, adopt: bool) -> None:
    """Learn who a cluster is, and what it can.

    Raises
    ------
    ClusterSilent
        If nobody answers, or another cluster that is not to be adopted.
    """
    uuid = doors(backend).uuid()
    new = bool(backend.uuid) and uuid != backend.uuid
    if new and not adopt:
        raise AnotherCluster(uuid)
    backend.uuid, backend.stranger = uuid, ""
    cluster = doors(backend)
    backend.features = sorted(cluster.features())
    if new:
        forget_jobs(backend, cluster)
        Backend.objects.filter(pk=backend.pk).update(event_number=None)
