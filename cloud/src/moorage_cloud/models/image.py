# SPDX-License-Identifier: BSD-2-Clause
"""Images: volumes that nobody writes to, and that new volumes are copies of."""

import uuid

from django.db import models

from .volume_type import VolumeType


class Image(models.Model):
    """An image, which every project can use.

    Attributes
    ----------
    volume_type
        The type whose storage has it: volumes of that storage can be made from it.
    backend_image_name
        What its data is called in the storage.
    size
        GiB of its data.
    generation
        Rises each time that a cluster has it for a copy.
    properties
        What volumes that are made from it are shown with.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255)
    volume_type = models.ForeignKey(VolumeType, models.PROTECT, related_name="images")
    backend_image_name = models.CharField(max_length=128)
    size = models.PositiveIntegerField()
    generation = models.PositiveIntegerField(default=0)
    properties = models.JSONField(default=dict)
    deleted = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-created", "-id")

    def __str__(self) -> str:
        return self.name or str(self.uuid)

    @property
    def metadata(self) -> dict[str, str]:
        """What the volumes that are copies of it tell of it."""
        form = {"container_format": "bare", "disk_format": "raw"}
        least = {"min_disk": f"{self.size}", "min_ram": "0"}
        told = {"image_id": str(self.uuid), "image_name": self.name, **form, **least}
        return {**self.properties, **told, "size": f"{self.size << 30}"}
