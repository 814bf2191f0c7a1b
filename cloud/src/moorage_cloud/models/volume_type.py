# SPDX-License-Identifier: BSD-2-Clause
"""What kinds of volumes there are, and where their data is."""

import uuid

from django.db import models

from .backend import StorageDomain

PROVIDER = "GNT-EXTP:"
"""What an extra spec begins with that is a parameter of the provider."""


class VolumeType(models.Model):
    """A kind of volume.

    Attributes
    ----------
    disk_template
        Ganeti's word for a template; of a provider ``ext_PROVIDER``.
    pool
        A storage pool of each cluster, which says template and provider; or empty.
    domain
        Which clusters see the storage; None where each has its own.
    detachable
        Whether a volume may be without a server, or leave it.
    specs
        Extra specs; those that begin with ``GNT-EXTP:`` go to the provider.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255)
    description = models.CharField(max_length=255, blank=True)
    disk_template = models.CharField(max_length=64)
    pool = models.CharField(max_length=64, blank=True)
    domain = models.ForeignKey(StorageDomain, models.PROTECT, null=True)
    detachable = models.BooleanField(default=True)
    is_public = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    specs = models.JSONField(default=dict)
    deleted = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("name",),
                condition=models.Q(deleted=False),
                name="one_type_of_a_name",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def template(self) -> str:
        """The template, without its provider."""
        return self.disk_template.partition("_")[0]

    @property
    def provider(self) -> str:
        """The provider; empty for a template without."""
        return self.disk_template.partition("_")[2]

    @property
    def place(self) -> tuple[object, ...]:
        """What says where the data of its volumes is."""
        return self.disk_template, self.pool, self.domain_id, self.params

    @property
    def params(self) -> dict[str, str]:
        """Parameters of the provider, by its names."""
        return {
            key.removeprefix(PROVIDER): str(value)
            for key, value in self.specs.items()
            if key.startswith(PROVIDER)
        }


class TypeAccess(models.Model):
    """That a project may use a type that not everybody sees."""

    volume_type = models.ForeignKey(VolumeType, models.CASCADE, related_name="access")
    project = models.CharField(max_length=255, db_index=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("volume_type", "project"),
                name="one_access_to_a_type",
            ),
        )

    def __str__(self) -> str:
        return f"{self.volume_type} for {self.project}"


class ProjectType(models.Model):
    """The type of a project's volumes that name none, instead of the cloud's."""

    project = models.CharField(max_length=255, unique=True)
    volume_type = models.ForeignKey(
        VolumeType,
        models.CASCADE,
        related_name="default_of",
    )

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.volume_type} of {self.project}"
