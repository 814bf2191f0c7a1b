# SPDX-License-Identifier: BSD-2-Clause
"""What users are told of verbs that failed."""

import uuid

from django.db import models


class Message(models.Model):
    """That something could not be done, for the project that it was done for.

    It stays with that project, whoever has the volume later.

    Attributes
    ----------
    request_id
        Of the request that began the verb.
    resource
        ``VOLUME`` or ``VOLUME_SNAPSHOT``.
    verb
        What was done with it.
    why
        Why it failed, in one sentence.
    expires
        Until when it is kept.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    project = models.CharField(max_length=255)
    request_id = models.CharField(max_length=64, blank=True)
    resource = models.CharField(max_length=32)
    resource_uuid = models.UUIDField()
    verb = models.CharField(max_length=16)
    why = models.TextField()
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("-created", "-id")
        indexes = (
            models.Index(
                fields=("project", "-created", "-id"), name="messages_of_a_project"
            ),
        )

    def __str__(self) -> str:
        return f"{self.verb} of {self.resource_uuid}: {self.why}"
