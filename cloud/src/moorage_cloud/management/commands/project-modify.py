# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage project-modify``: let a project be used, or not."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.identity import people
from moorage_cloud.management.command import CloudCommand


class Command(CloudCommand):
    """Change a project."""

    help = "Change a project; one that is disabled lets nobody in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is to be different."""
        parser.add_argument("project", help="its name or ID")
        enabled = parser.add_mutually_exclusive_group(required=True)
        enabled.add_argument("--enable", action="store_true")
        enabled.add_argument("--disable", action="store_true")

    def go(self, options: Mapping[str, Any]) -> None:
        """Change it."""
        project = people.project(options["project"])
        project.enabled = options["enable"]
        project.save()
        self.tell(f"Project '{project}' is {'en' if project.enabled else 'dis'}abled")
