# SPDX-License-Identifier: BSD-2-Clause
"""Pages of projects, their people and what they may use."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin

from moorage_cloud.identity.models import Project, User
from moorage_cloud.models import Limit, Usage
from moorage_cloud.verbs import quota

from .site import Pages, site


@admin.register(Limit, site=site)
class Limits(Pages[Limit]):
    """What projects may use that is not as the settings say."""

    list_display = ("project", "resource", "limit")
    list_filter = ("resource",)
    search_fields = ("project", "resource")
    fields = ("project", "resource", "limit")
    changes = ("limit",)

    def alter(self, thing: Limit, given: Mapping[str, Any]) -> None:
        """Set it."""
        quota.set_limits(
            thing.project, {thing.resource: given.get("limit", thing.limit)}
        )


@admin.register(Usage, site=site)
class Usages(Pages[Usage]):
    """What projects use; it follows from what there is."""

    list_display = ("project", "resource", "in_use")
    list_filter = ("resource",)
    search_fields = ("project", "resource")
    fields = ("project", "resource", "in_use")


@admin.register(Project, site=site)
class Projects(Pages[Project]):
    """The projects."""

    list_display = ("name", "id", "enabled", "description")
    list_filter = ("enabled",)
    search_fields = ("name", "id")
    fields = ("id", "name", "description", "enabled", "created")


@admin.register(User, site=site)
class Users(Pages[User]):
    """The users, and their roles."""

    list_display = ("name", "id", "enabled", "roles")
    list_filter = ("enabled", "assignments__role")
    search_fields = ("name", "id", "email")
    fields = ("id", "name", "email", "enabled", "roles", "last_login", "created")

    @admin.display(description="roles")
    def roles(self, user: User) -> str:
        """Return what somebody may where."""
        found = user.assignments.select_related("project")
        return ", ".join(f"{one.role} of {one.project}" for one in found)
