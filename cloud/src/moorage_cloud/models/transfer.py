# SPDX-License-Identifier: BSD-2-Clause
"""Offers of a volume to another project."""

import uuid

from django.db import models

from .volume import Volume


class Transfer(models.Model):
    """An offer; who has its key may take the volume.

    Attributes
    ----------
    salt, secret
        A hash of the key, which is told once.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    volume = models.OneToOneField(Volume, models.CASCADE, related_name="transfer")
    name = models.CharField(max_length=255, blank=True)
    project = models.CharField(max_length=255)
    salt = models.CharField(max_length=32)
    secret = models.CharField(max_length=128)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.name or str(self.uuid)
