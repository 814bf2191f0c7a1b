# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage project-create``: a project, which owns volumes and has a quota."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.identity import people
from moorage_cloud.management.command import CloudCommand


class Command(CloudCommand):
    """Make a project."""

    help = "Make a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take its name."""
        parser.add_argument("name")
        parser.add_argument("--description", default="")

    def go(self, options: Mapping[str, Any]) -> None:
        """Make it."""
        made = people.add_project(options["name"], options["description"])
        self.tell(f"Created project '{made.name}' with ID {made.pk}")
