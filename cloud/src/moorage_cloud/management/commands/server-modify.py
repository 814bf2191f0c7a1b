# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage server-modify``: stop a server, or start it."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import set_power


class Command(CloudCommand):
    """Stop or start a server."""

    help = "Have a server's cluster stop it, or start it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one, and what is to be done."""
        parser.add_argument("server_id", help="its ID or uuid")
        parser.add_argument("--action", required=True, choices=("start", "stop"))
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        server = find.server(options["server_id"])
        set_power(ADMIN, server, options["action"].upper())
        if options["wait"]:
            waiting.wait(self, server)
        else:
            self.tell(f"Server {server.pk} is to {options['action']}")
