# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage helper-servers-sync``: each cluster has its helper server."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.models import Backend, Server
from moorage_cloud.verbs import build, helper_name, set_power


class Command(CloudCommand):
    """See to it that each cluster has a helper server, which is stopped."""

    help = (
        "Have a helper server made on each cluster that has none, and those that run "
        "stopped; once more, it changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take for which clusters."""
        parser.add_argument("--backend-id", help="one cluster alone; else all")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it for each of them."""
        named = options["backend_id"]
        for backend in [find.backend(named)] if named else Backend.objects.all():
            if backend.offline or backend.drained:
                why = "offline" if backend.offline else "drained"
                self.tell(f"Backend {backend}: It is {why}: left alone")
                continue
            server = self._synced(backend)
            if options["wait"]:
                waiting.wait(self, server)
        self.tell("Syncing completed")

    def _synced(self, backend: Backend) -> Server:
        """Return the cluster's helper, which is there or comes to be."""
        known = backend.servers.filter(helper=True, deleted=False)
        usable = [one for one in known if one.operstate != Server.State.ERROR]
        if not usable:
            self.tell(f"Backend {backend}: Creating new helper server (1/1)")
            return build(ADMIN, backend, helper_name(backend))
        for one in usable:
            if one.operstate == Server.State.STARTED:
                self.tell(f"Backend {backend}: Stopping helper server {one.pk}")
                set_power(ADMIN, one, Server.Action.STOP)
        return usable[0]
