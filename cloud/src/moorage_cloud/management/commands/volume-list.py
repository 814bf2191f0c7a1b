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
        "user.uuid": lambda one: one.userid,
        "size": lambda one: one.size,
        "status": state,
        "source": lambda one: one.source,
        "disk_template": lambda one: one.volume_type.disk_template,
        "volume_type": lambda one: one.volume_type.name,
        "server_id": lambda one: one.place.server_id if one.place else None,
        "uuid": lambda one: one.uuid,
        "name": lambda one: one.name,
        "project": lambda one: one.project,
        "index": lambda one: one.place.index if one.place else None,
        "backend": lambda one: one.backend,
        "fault": lambda one: one.fault,
        "created": lambda one: one.created,
        "deleted": lambda one: one.deleted,
    }
    usual = (
        *("id", "user.uuid", "size", "status", "source", "disk_template"),
        *("volume_type", "server_id"),
    )

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Volume]:
        """Return those that are there, or all."""
        known = Volume.objects.select_related("volume_type", "attachment", "backend")
        return known if options["deleted"] else known.filter(deleted=False)
