# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage user-list``: who can log in, and what they may do where."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.identity.models import User
from moorage_cloud.management.command import ListCommand


def _roles(user: User) -> str:
    found = user.assignments.select_related("project").order_by("project__name", "role")
    return " ".join(f"{one.role}@{one.project.name}" for one in found)


class Command(ListCommand[User]):
    """List users."""

    help = "List users."
    columns = {
        "id": lambda one: one.pk,
        "name": lambda one: one.name,
        "enabled": lambda one: one.enabled,
        "email": lambda one: one.email,
        "roles": _roles,
    }

    def rows(self, options: Mapping[str, Any]) -> QuerySet[User]:  # noqa: ARG002
        """Return the users."""
        return User.objects.all()
