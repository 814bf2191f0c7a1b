# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage image-list``: the images that volumes are made from."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.management.command import ListCommand
from moorage_cloud.models import Image


class Command(ListCommand[Image]):
    """List the images."""

    help = "List the images."
    columns = {
        "id": lambda one: one.pk,
        "uuid": lambda one: one.uuid,
        "name": lambda one: one.name,
        "size": lambda one: one.size,
        "volume_type": lambda one: one.volume_type,
        "data": lambda one: one.backend_image_name,
        "volumes": lambda one: one.volumes.filter(deleted=False).count(),
        "properties": lambda one: one.properties,
        "deleted": lambda one: one.deleted,
    }

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Image]:
        """Return those that are there, or all."""
        known = Image.objects.select_related("volume_type")
        return known if options["deleted"] else known.filter(deleted=False)
