# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage server-list``: the servers of everybody."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.management.command import ListCommand
from moorage_cloud.models import Server


class Command(ListCommand[Server]):
    """List the servers."""

    help = "List the servers of everybody."
    columns = {
        "id": lambda one: one.pk,
        "uuid": lambda one: one.uuid,
        "name": lambda one: one.name,
        "user.uuid": lambda one: one.userid,
        "project": lambda one: one.project,
        "backend": lambda one: one.backend,
        "instance": lambda one: one.instance,
        "status": lambda one: one.operstate,
        "action": lambda one: one.action or None,
        "helper": lambda one: one.helper,
        "volumes": lambda one: one.attachments.count(),
    }

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Server]:
        """Return those that are there, or all."""
        known = Server.objects.select_related("backend")
        return known if options["deleted"] else known.filter(deleted=False)
