# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage reconcile-servers``: compare the record with the clusters."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.models import Backend
from moorage_cloud.work import Doors, Finding, compare

KINDS = {
    "job": "unheard_jobs",
    "disk": "unsynced_disks",
    "orphan": "orphan_disks",
}
"""What each kind of finding is called in options."""


class Command(CloudCommand):
    """Find what differs; set it right where that destroys nothing."""

    help = (
        "Compare what is on record with what the clusters have. Nothing is changed "
        "unless it is to be fixed, and nothing is ever destroyed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to look for, and what to set right."""
        parser.add_argument("--backend-id", help="one cluster alone; else all")
        parser.add_argument("--detect-all", action="store_true")
        parser.add_argument("--fix-all", action="store_true")
        for word in KINDS.values():
            dashed = word.replace("_", "-")
            parser.add_argument(f"--detect-{dashed}", action="store_true")
            if word != KINDS["orphan"]:
                parser.add_argument(f"--fix-{dashed}", action="store_true")

    def go(self, options: Mapping[str, Any]) -> None:
        """Look, and fix what is to be fixed."""
        named = options["backend_id"]
        known = Backend.objects.filter(offline=False)
        backends = [find.backend(named)] if named else list(known)
        doors = Doors()
        try:
            found = list(compare(backends, doors))
            for one in found:
                self._treat(one, options)
        finally:
            doors.close()
        if not found:
            self.tell("Everything is as it is on record")

    def _treat(self, one: Finding, options: Mapping[str, Any]) -> None:
        word = KINDS[one.kind].replace("-", "_")
        fixes = options["fix_all"] or options.get(f"fix_{word}")
        named = any(
            options[f"detect_{kind.replace('-', '_')}"] for kind in KINDS.values()
        )
        wanted = options["detect_all"] or not named or options[f"detect_{word}"]
        if not (fixes or wanted):
            return
        self.tell(one.sentence)
        if fixes and one.repair:
            one.repair()
            self.tell("  fixed")
        elif fixes:
            self.tell("  a person has to look: nothing is destroyed here")
