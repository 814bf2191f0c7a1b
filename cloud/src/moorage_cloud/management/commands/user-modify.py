# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage user-modify``: another password, other roles, in or out."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from moorage_cloud.errors import BadRequest
from moorage_cloud.identity import people
from moorage_cloud.identity.models import Project, Role, User
from moorage_cloud.management import passwords
from moorage_cloud.management.command import CloudCommand


class Command(CloudCommand):
    """Change a user."""

    help = "Change a user. A new password ends all tokens that there are."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is to be different."""
        parser.add_argument("user", help="name or ID")
        parser.add_argument("--password", action="store_true", help="set another one")
        passwords.add_argument(parser)
        roles = parser.add_argument_group(
            "roles, as ROLE@PROJECT; several are possible"
        )
        roles.add_argument("--grant", action="append", default=[])
        roles.add_argument("--withdraw", action="append", default=[])
        enabled = parser.add_mutually_exclusive_group()
        enabled.add_argument("--enable", action="store_true")
        enabled.add_argument("--disable", action="store_true")

    def go(self, options: Mapping[str, Any]) -> None:
        """Change it."""
        user = people.user(options["user"])
        granted = [_role(one) for one in options["grant"]]
        withdrawn = [_role(one) for one in options["withdraw"]]
        if options["password"] or options["password_file"]:
            user.renew(passwords.read(options["password_file"]))
            self.tell(f"User '{user}' has another password")
        for role, project in granted:
            people.grant(user, project, role)
            self.tell(f"User '{user}' is {role} of project '{project}'")
        for role, project in withdrawn:
            people.withdraw(user, project, role)
            self.tell(f"User '{user}' is not {role} of project '{project}'")
        if options["enable"] or options["disable"]:
            self._enable(user, enabled=options["enable"])

    def _enable(self, user: User, *, enabled: bool) -> None:
        user.enabled = enabled
        if not enabled:  # what they had is not good again when they are back
            user.tokens_since = timezone.now()
        user.save()
        self.tell(f"User '{user}' is {'en' if enabled else 'dis'}abled")


def _role(text: str) -> tuple[Role, Project]:
    role, _, project = text.partition("@")
    if role not in Role.values:
        known = ", ".join(Role.values)
        raise BadRequest(f"'{text}' is no ROLE@PROJECT; roles are {known}")
    return Role(role), people.project(project)
