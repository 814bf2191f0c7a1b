# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage backend-remove``: the service uses a cluster no more."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.verbs import forget_backend


class Command(CloudCommand):
    """Let a cluster be none of the service's; nothing is asked of it."""

    help = (
        "Use a cluster no more. Its instances stay there, and are no servers any more. "
        "One that has a volume, or the only way to some data, is not removed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("backend", help="its ID or name")
        parser.add_argument("-f", "--force", action="store_true", help="do not ask")

    def go(self, options: Mapping[str, Any]) -> None:
        """Forget it."""
        backend = find.backend(options["backend"])
        question = f"Are you sure you want to remove backend {backend} ?"
        if not self.sure(question, options):
            return
        name = backend.clustername
        count = forget_backend(backend)
        self.tell(f"Successfully removed backend '{name}' and {count} servers of it")
