# SPDX-License-Identifier: BSD-2-Clause
"""What became of volumes, in order: it outlives servers, clusters and the volume."""

from django.db import models

from .volume import Volume


class StoryEntry(models.Model):
    """One thing that happened to a volume, and was over by `ended`.

    It is written by the transaction that lets it happen. Whom it names, it names by
    words: they may be gone when somebody reads it.

    Attributes
    ----------
    what
        A verb (:class:`moorage_cloud.life.Verb`), or one of :class:`What`.
    about
        Which snapshot or copy a verb made of it; empty for the volume itself.
    result
        ``done`` or ``failed``.
    why
        What it failed with; else what there is to say, or nothing.
    project, userid
        Whose it was from then on; `userid` is who asked, empty for the service.
    server, server_uuid
        With which server; empty for none.
    cluster
        Which one did it; empty for none.
    epoch
        That the volume had there at first: above all earlier ones; None if no cluster
        got it anew.
    jobs
        The cluster's, in order: each with its act and number.
    size
        GiB from then on.
    """

    class What(models.TextChoices):
        """What happens without asking a cluster."""

        CREATE = "create"
        IMPORT = "import"
        EXTEND = "extend"
        RETYPE = "retype"
        DELETE = "delete"
        OFFER = "offer"
        WITHDRAW = "withdraw"
        TRANSFER = "transfer"
        RESET = "reset"
        CUT_OFF = "cut-off"
        NO_DATA = "no-data"
        FOUND = "found"
        LENT = "lent"

    volume = models.ForeignKey(Volume, models.CASCADE, related_name="story")
    what = models.CharField(max_length=16)
    about = models.CharField(max_length=300, blank=True)
    result = models.CharField(max_length=16, default="done")
    why = models.TextField(blank=True)
    project = models.CharField(max_length=255)
    userid = models.CharField(max_length=100, blank=True)
    server = models.CharField(max_length=255, blank=True)
    server_uuid = models.CharField(max_length=36, blank=True)
    cluster = models.CharField(max_length=128, blank=True)
    epoch = models.BigIntegerField(null=True)
    jobs = models.JSONField(default=list)
    size = models.PositiveIntegerField()
    request_id = models.CharField(max_length=64, blank=True)
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "story entries"

    def __str__(self) -> str:
        return f"{self.what} of {self.volume_id}"
