# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage snapshot-remove``: delete a snapshot and its data."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import ADMIN, CloudCommand
from moorage_cloud.verbs import delete_snapshot


class Command(CloudCommand):
    """Delete a snapshot and its data."""

    help = "Delete a snapshot and its data."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("snapshot_id", help="its ID or uuid")
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        snapshot = find.snapshot(options["snapshot_id"])
        question = f"Are you sure you want to remove snapshot {snapshot.pk} ?"
        if not self.sure(question, options):
            return
        delete_snapshot(ADMIN, snapshot)
        if options["wait"]:
            waiting.wait(self, snapshot)
        snapshot.refresh_from_db(fields=["deleted"])
        if snapshot.deleted:
            self.tell(f"Successfully removed snapshot <{snapshot.pk}>")
        else:
            self.tell(f"Snapshot {snapshot.pk} is to be removed")
