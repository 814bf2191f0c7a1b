# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage project-list``: the projects."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.identity.models import Project
from moorage_cloud.management.command import ListCommand


class Command(ListCommand[Project]):
    """List projects."""

    help = "List projects."
    columns = {
        "id": lambda one: one.pk,
        "name": lambda one: one.name,
        "enabled": lambda one: one.enabled,
        "description": lambda one: one.description,
        "members": lambda one: one.assignments.values("user").distinct().count(),
    }

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Project]:  # noqa: ARG002
        """Return the projects."""
        return Project.objects.all()
