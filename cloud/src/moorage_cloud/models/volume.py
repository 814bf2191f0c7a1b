# SPDX-License-Identifier: BSD-2-Clause
"""Volumes, and where they are attached."""

import uuid
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from moorage_cloud.conf import CONF
from moorage_cloud.life import Life, Status, Task

from .backend import Backend
from .image import Image
from .server import Server
from .volume_type import VolumeType

if TYPE_CHECKING:
    from .operation import Operation
    from .snapshot import Snapshot

OFTEN = ("uuid", "name", "status", "size", "updated", "bootable", "volume_type")
"""By what a project's volumes are chosen and sorted, besides when they were made."""
EPOCHS = 1 << 20
"""How often a cluster may attach a volume between two verbs of this service.

Each verb raises the generation, and an attachment's epoch starts at that many times
this: above all earlier ones, so that one that was cut off stays below.
"""


class Volume(models.Model):
    """A volume.

    Its number is what its name on the clusters is made of; users know it by its uuid.

    Attributes
    ----------
    size
        GiB.
    status
        One of :class:`Status`, as clients spell it.
    initialized
        Whether its data was made.
    generation
        Rises with each verb.
    backend
        The cluster that had it last; None before its data was made.
    legacy_backend_volume_uuid
        The name of a volume that an earlier version made; None for one of ours.
    volume_source, snapshot_source, image_source
        What its data is a copy of; at most one of them.
    uncopied
        Whether its data is still to be a copy: until then, nobody has it.
    image_metadata
        What is told of the image that its data began as; empty for none.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255, blank=True)
    description = models.CharField(max_length=255, blank=True)
    userid = models.CharField(max_length=100, db_index=True)
    project = models.CharField(max_length=255)
    size = models.PositiveIntegerField()
    volume_type = models.ForeignKey(VolumeType, models.PROTECT, related_name="volumes")
    status = models.CharField(max_length=32, default=Status.CREATING)
    initialized = models.BooleanField(default=False)
    generation = models.PositiveIntegerField(default=0)
    backend = models.ForeignKey(Backend, models.PROTECT, null=True)
    legacy_backend_volume_uuid = models.CharField(max_length=128, null=True)  # noqa: DJ001
    delete_on_termination = models.BooleanField(default=False)
    read_only = models.BooleanField(default=False)
    bootable = models.BooleanField(default=False)
    metadata = models.JSONField(default=dict)
    volume_source = models.ForeignKey("self", models.SET_NULL, null=True)
    snapshot_source = models.ForeignKey(
        "Snapshot", models.SET_NULL, null=True, related_name="volumes"
    )
    image_source = models.ForeignKey(
        Image, models.PROTECT, null=True, related_name="volumes"
    )
    uncopied = models.BooleanField(default=False)
    image_metadata = models.JSONField(default=dict)
    snapshot_counter = models.PositiveIntegerField(default=0)
    fault = models.TextField(blank=True)
    deleted = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-created", "-id")
        indexes = (
            models.Index(
                fields=("project", "-created", "-id"),
                condition=Q(deleted=False),
                name="volumes_of_a_project",
            ),
            models.Index(
                fields=("-created", "-id"),
                condition=Q(deleted=False),
                name="volumes_of_all",
            ),
            # Chosen or sorted by these, a page costs the same however many there are.
            *(
                models.Index(
                    fields=("project", column, "created", "id"),
                    condition=Q(deleted=False),
                    name=f"volumes_by_{column}",
                )
                for column in OFTEN
            ),
        )

    def __str__(self) -> str:
        return self.name or str(self.uuid)

    @property
    def numbered_name(self) -> str:
        """The name that is made of its number."""
        return f"{CONF.prefix}vol-{self.pk}"

    @property
    def backend_volume_uuid(self) -> str:
        """Its name on every cluster, for all its life."""
        return self.legacy_backend_volume_uuid or self.numbered_name

    @property
    def place(self) -> "Attachment | None":
        """Where it is attached, or about to be or to leave."""
        return getattr(self, "attachment", None)

    @property
    def server(self) -> Server | None:
        """The server that has it, gets it or loses it."""
        return self.place.server if self.place else None

    @property
    def source(self) -> str:
        """What its data is a copy of, as ``snapshot:NUMBER``; ``blank`` for nothing."""
        if self.snapshot_source_id:
            return f"snapshot:{self.snapshot_source_id}"
        if self.volume_source_id:
            return f"volume:{self.volume_source_id}"
        return f"image:{self.image_source_id}" if self.image_source_id else "blank"

    @property
    def original(self) -> "Volume | Snapshot | Image | None":
        """What its data is a copy of; None for nothing."""
        return self.snapshot_source or self.volume_source or self.image_source

    @property
    def epoch(self) -> int:
        """The epoch that its next attachment starts with, or one above that."""
        return self.generation * EPOCHS

    def life(self, operation: "Operation | None") -> Life:
        """Return where it stands; `operation` is the one that is under way."""
        task: Task | None = operation.task() if operation else None
        return Life(
            status=Status(self.status),
            size=self.size,
            initialized=self.initialized,
            server=self.place.server_id if self.place else None,
            generation=self.generation,
            task=task,
        )


class Attachment(models.Model):
    """A volume on a server; it begins and ends with the verbs.

    Clients are shown it when the guest has the disk, which `attached_at` says.

    Attributes
    ----------
    index
        Which disk of the server it is; 0 is the one that it starts from.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    volume = models.OneToOneField(Volume, models.CASCADE, related_name="attachment")
    server = models.ForeignKey(Server, models.PROTECT, related_name="attachments")
    index = models.PositiveIntegerField()
    attached_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("server", "index")
        constraints = (
            models.UniqueConstraint(
                fields=("server", "index"), name="one_volume_in_a_slot"
            ),
        )

    def __str__(self) -> str:
        return f"{self.volume} on {self.server}"

    @property
    def device(self) -> str:
        """What the guest is likely to call it."""
        letters, index = "", self.index
        while index >= 0:
            letters = chr(ord("a") + index % 26) + letters
            index = index // 26 - 1
        return f"/dev/vd{letters}"
