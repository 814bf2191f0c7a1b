# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage server-show``: what is on record of a server."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import server_facts


class Command(CloudCommand):
    """Show a server."""

    help = "Show what is on record of a server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("server_id", help="its ID or uuid")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print it."""
        server = find.server(options["server_id"])
        self.describe(f"State of Server {server.pk} in DB", server_facts(server))
