# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage snapshot-modify``: other words on record, or a status set right."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.errors import BadRequest
from moorage_cloud.management import find
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import reset_snapshot, update_snapshot


class Command(CloudCommand):
    """Change what is on record of a snapshot."""

    help = "Change a snapshot's name, description or status; its data stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is to be different."""
        parser.add_argument("snapshot_id", help="its ID or uuid")
        for word in ("name", "description"):
            parser.add_argument(f"--{word}")
        parser.add_argument("--status", help="available, error or error_deleting")

    def go(self, options: Mapping[str, Any]) -> None:
        """Change it."""
        snapshot = find.snapshot(options["snapshot_id"])
        words = {word: options[word] for word in ("name", "description")}
        if options["status"] is None and not any(
            word is not None for word in words.values()
        ):
            raise BadRequest("say --name, --description or --status")
        if options["status"] is not None:
            reset_snapshot(ADMIN, snapshot, options["status"])
        update_snapshot(snapshot, **words)
        self.tell(f"Successfully updated snapshot <{snapshot.pk}>")
