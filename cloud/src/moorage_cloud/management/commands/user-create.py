# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage user-create``: somebody who can log in."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.identity import people
from moorage_cloud.identity.models import Role
from moorage_cloud.management import passwords
from moorage_cloud.management.command import CloudCommand


class Command(CloudCommand):
    """Make a user."""

    help = "Make a user, with a role in a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take who it is."""
        parser.add_argument("name")
        parser.add_argument("--project", help="where they work usually")
        parser.add_argument("--role", choices=Role.values, default=Role.MEMBER.value)
        parser.add_argument("--email", default="")
        passwords.add_argument(parser)

    def go(self, options: Mapping[str, Any]) -> None:
        """Make it."""
        named = options["project"]
        project = people.project(named) if named else None
        password = passwords.read(options["password_file"])
        made = people.add_user(options["name"], password, project, options["email"])
        if project:
            people.grant(made, project, Role(options["role"]))
        self.tell(f"Created user '{made.name}' with ID {made.pk}")
