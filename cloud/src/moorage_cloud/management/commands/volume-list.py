# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-list``: the volumes of everybody."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.management.command import ListCommand
from moorage_cloud.management.shown import state
from moorage_cloud.models import Volume


class Command(ListCommand[Volume]):
    """List the volumes."""

    help = "List the volumes of everybody."
    columns = {
        "id": lambda one: one.pk,
        "uuid": lambda one: one.uuid,
        "name": lambda one: one.name,
        "user.uuid": lambda one: one.userid,
        "project": lambda one: one.project,
        "size": lambda one: one.size,
        "status": state,
        "source": lambda one: one.source,
        "disk_template": lambda one: one.volume_type.disk_template,
        "volume_type": lambda one: one.volume_type.name,
        "server_id": lambda one: one.place.server_id if one.place else None,
    }

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Volume]:
        """Return those that are there, or all."""
        known = Volume.objects.select_related("volume_type", "attachment")
        return known if options["deleted"] else known.filter(deleted=False)
