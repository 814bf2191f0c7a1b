# SPDX-License-Identifier: BSD-2-Clause
"""Workers, as far as others see them."""

from datetime import timedelta

from django.db import models
from django.utils import timezone

KEPT = timedelta(hours=1)
"""For how long one is remembered that died."""


class Heartbeat(models.Model):
    """A worker; it says every few seconds that it is there.

    Attributes
    ----------
    name
        Machine and process.
    """

    name = models.CharField(max_length=255, unique=True)
    seen = models.DateTimeField()

    def __str__(self) -> str:
        return self.name

    @classmethod
    def beat(cls, name: str) -> None:
        """Say that a worker is there."""
        now = timezone.now()
        cls.objects.update_or_create(name=name, defaults={"seen": now})
        cls.objects.filter(seen__lt=now - KEPT).delete()
