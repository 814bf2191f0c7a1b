# SPDX-License-Identifier: BSD-2-Clause
"""Copies in time of volumes."""

import uuid

from django.db import models

from moorage_cloud.conf import CONF
from moorage_cloud.life import Status

from .backend import Backend
from .volume import Volume
from .volume_type import VolumeType


class Snapshot(models.Model):
    """A snapshot of a volume.

    Attributes
    ----------
    size
        GiB of the volume when it was taken.
    number
        Counts the volume's snapshots; none is used twice.
    initialized
        Whether its data was made.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    volume = models.ForeignKey(Volume, models.PROTECT, related_name="snapshots")
    name = models.CharField(max_length=255, blank=True)
    description = models.CharField(max_length=255, blank=True)
    userid = models.CharField(max_length=100)
    project = models.CharField(max_length=255, db_index=True)
    size = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=32, default=Status.CREATING)
    initialized = models.BooleanField(default=False)
    generation = models.PositiveIntegerField(default=0)
    metadata = models.JSONField(default=dict)
    fault = models.TextField(blank=True)
    deleted = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-created", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("volume", "number"), name="one_snapshot_of_a_number"
            ),
        )

    def __str__(self) -> str:
        return self.name or str(self.uuid)

    @property
    def volume_type(self) -> VolumeType:
        """The type whose storage has it."""
        return self.volume.volume_type

    @property
    def backend(self) -> Backend | None:
        """The cluster that had its volume last."""
        return self.volume.backend

    @property
    def backend_snapshot_name(self) -> str:
        """Its name on every cluster."""
        return f"{CONF.prefix}snap-{self.volume_id}-{self.number}"
