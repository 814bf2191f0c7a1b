# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage server-remove``: a server goes, with its instance."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import remove


class Command(CloudCommand):
    """Remove a server."""

    help = (
        "Remove a server with its instance. What it starts from and volumes with "
        "delete_on_termination are deleted, the others are detached."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("server_id", help="its ID or uuid")
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")

    def go(self, options: Mapping[str, Any]) -> None:
        """Begin it; workers carry it out."""
        server = find.server(options["server_id"])
        question = f"Are you sure you want to remove server {server.pk} ?"
        if self.sure(question, options):
            remove(ADMIN, server)
            self.tell(f"Server {server.pk} is to be removed")
