# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage reconcile-servers``: compare the record with the clusters."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Any

from moorage_cloud.errors import Refusal
from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.models import Backend
from moorage_cloud.work import Doors, compare

KINDS = {
    "job": "pending-tasks",
    "disk": "unsynced-disks",
    "size": "unsynced-sizes",
    "snapshot": "unsynced-snapshots",
    "server": "unsynced",
    "stale": "stale",
    "orphan": "orphans",
}
"""What each kind of finding is called in options."""
FIXED = tuple(word for kind, word in KINDS.items() if kind != "orphan")
"""Those that can be set right: nothing is destroyed."""
LEFT = {
    "orphan": "a person has to look: nothing is destroyed here",
    "stale": "if that is so, --fix-stale takes it from the record",
}
"""What `--fix-all` leaves: a cluster that was made anew has none of the old servers."""


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
            parser.add_argument(f"--detect-{word}", action="store_true")
        for word in FIXED:
            parser.add_argument(f"--fix-{word}", action="store_true")

    def go(self, options: Mapping[str, Any]) -> None:
        """Look, and fix what is to be fixed; without any option, only look."""
        named = options["backend_id"]
        known = [find.backend(named)] if named else list(Backend.objects.all())
        backends = [one for one in known if named or not one.offline]
        for off in known:
            if off not in backends:
                self.tell(f"cluster {off} is said to be off, and is not asked")
        wanted, fixes = _named(options, "detect"), _named(options, "fix")
        every = options["detect_all"] or options["fix_all"] or not (wanted or fixes)
        told = {*KINDS.values()} if every else wanted | fixes
        if options["fix_all"]:
            fixes |= {word for kind, word in KINDS.items() if kind not in LEFT}
        doors = Doors()
        try:
            found = [one for one in compare(backends, doors) if KINDS[one.kind] in told]
            for one in found:
                self.tell(one.sentence)
                if KINDS[one.kind] in fixes and one.repair:
                    self._repair(one.repair)
                elif options["fix_all"]:
                    self.tell(f"  {LEFT[one.kind]}")
        finally:
            doors.close()
        if not found and backends:
            where = ", where it was asked" if len(backends) < len(known) else ""
            self.tell(f"Everything is as it is on record{where}")

    def _repair(self, repair: Callable[[], object]) -> None:
        try:
            repair()
        except Refusal as refusal:
            self.tell(f"  {refusal.sentence}")
        else:
            self.tell("  fixed")


def _named(options: Mapping[str, Any], verb: str) -> set[str]:
    """Return which kinds the options of a verb name."""
    return {
        word
        for word in KINDS.values()
        if options.get(f"{verb}_{word.replace('-', '_')}")
    }
