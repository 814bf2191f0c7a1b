# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage snapshot-create``: a copy in time of a volume."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find, waiting
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.shown import snapshot_facts
from moorage_cloud.verbs import Caller, take_snapshot


class Command(CloudCommand):
    """Take a snapshot; it is of the volume's owner."""

    help = "Take a snapshot of a volume, for its owner."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take of which volume."""
        parser.add_argument("volume_id", help="its ID or uuid")
        parser.add_argument("--name", default="")
        parser.add_argument("--description", default="")
        waiting.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Take it."""
        volume = find.volume(options["volume_id"])
        who = Caller(volume.userid, volume.project, request_id="snf-manage")
        words = {word: options[word] for word in ("name", "description")}
        snapshot = take_snapshot(who, volume, **words)
        self.tell(f"Created snapshot '{snapshot.pk}' in DB:")
        if options["wait"]:
            waiting.wait(self, snapshot)
        found = find.snapshot(str(snapshot.pk))
        self.describe(f"State of snapshot {found.pk} in DB", snapshot_facts(found))
