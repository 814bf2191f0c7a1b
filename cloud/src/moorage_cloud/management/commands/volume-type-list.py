# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-type-list``: the types of volumes."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.management.command import ListCommand
from moorage_cloud.models import VolumeType


class Command(ListCommand[VolumeType]):
    """List the types."""

    help = "List the volume types."
    columns = {
        "id": lambda one: one.pk,
        "name": lambda one: one.name,
        "disk_template": lambda one: one.disk_template,
        "pool": lambda one: one.pool,
        "domain": lambda one: one.domain or "",
        "detachable": lambda one: one.detachable,
        "volumes": lambda one: one.volumes.filter(deleted=False).count(),
        "deleted": lambda one: one.deleted,
        "specs": lambda one: one.specs,
        "uuid": lambda one: one.uuid,
        "description": lambda one: one.description,
        "default": lambda one: one.is_default,
        "public": lambda one: one.is_public,
    }
    usual = (
        *("id", "name", "disk_template", "pool", "domain", "detachable"),
        *("volumes", "deleted", "specs"),
    )

    def rows(self, options: Mapping[str, Any]) -> QuerySet[VolumeType]:
        """Return those that are there, or all."""
        known = VolumeType.objects.select_related("domain")
        return known if options["deleted"] else known.filter(deleted=False)
