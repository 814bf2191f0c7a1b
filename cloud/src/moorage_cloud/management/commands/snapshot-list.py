# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage snapshot-list``: the snapshots of everybody."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.management.command import ListCommand
from moorage_cloud.management.shown import state
from moorage_cloud.models import Snapshot


class Command(ListCommand[Snapshot]):
    """List the snapshots."""

    help = "List the snapshots of everybody."
    columns = {
        "id": lambda one: one.pk,
        "user.uuid": lambda one: one.userid,
        "name": lambda one: one.name,
        "volume_id": lambda one: one.volume_id,
        "size": lambda one: one.size,
        "status": state,
        "uuid": lambda one: one.uuid,
        "project": lambda one: one.project,
        "backend_snapshot_name": lambda one: one.backend_snapshot_name,
        "fault": lambda one: one.fault,
        "created": lambda one: one.created,
        "deleted": lambda one: one.deleted,
    }
    usual = ("id", "user.uuid", "name", "volume_id", "size", "status")

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Snapshot]:
        """Return those that are there, or all."""
        known = Snapshot.objects.all()
        return known if options["deleted"] else known.filter(deleted=False)
