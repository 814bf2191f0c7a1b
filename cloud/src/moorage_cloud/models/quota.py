# SPDX-License-Identifier: BSD-2-Clause
"""What projects may use, and what they do."""

from django.db import models


class Limit(models.Model):
    """A limit of a project for a resource; -1 is none.

    Without a row, the project has what the settings say. A resource is ``volumes``,
    ``gigabytes`` or ``snapshots``, or one of these with ``_`` and the name of a type.
    """

    project = models.CharField(max_length=255)
    resource = models.CharField(max_length=300)
    limit = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project", "resource"), name="one_limit_of_a_resource"
            ),
        )

    def __str__(self) -> str:
        return f"{self.project} {self.resource}: {self.limit}"


class Usage(models.Model):
    """What a project uses of a resource: the sum over what it has, kept up to date."""

    project = models.CharField(max_length=255)
    resource = models.CharField(max_length=300)
    in_use = models.BigIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project", "resource"), name="one_usage_of_a_resource"
            ),
        )

    def __str__(self) -> str:
        return f"{self.project} {self.resource}: {self.in_use}"
