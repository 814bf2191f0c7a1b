# SPDX-License-Identifier: BSD-2-Clause
"""What is being done to volumes, and what clusters are to be asked for."""

import uuid
from contextlib import AbstractContextManager

from django.db import models
from django.db.models import Q

from moorage_cloud import tracing
from moorage_cloud.life import Act, Status, Task, Verb

from .backend import Backend
from .server import Server
from .snapshot import Snapshot
from .volume import Volume


class Operation(models.Model):
    """A verb under way, or one that is over.

    It is written by the transaction that changes the volume. Of a volume at most one
    is under way, and of a server: what is done with that itself has neither a volume
    nor a snapshot, and its verb is one of :class:`Server.Action`.

    Attributes
    ----------
    acts, step, back, before, size, why
        The task: see :class:`moorage_cloud.life.Task`.
    generation
        The volume's with this verb.
    data
        The name of the volume that it works on: of a copy, the original's. What works
        on one volume goes in a row.
    borrowed
        The generation of the original with which a copy has it; 0 for no copy.
    backend
        The cluster that is asked.
    server
        With whose instance; None for a disk without one.
    job
        The cluster's number for the step under way; None until it told one.
    jobs
        The cluster's of all its steps, in order: each with its act and number.
    look_at
        When to look at the job, if nothing was heard.
    looks
        How often it was looked at.
    request_id
        Of the request that began it; the cluster's job has it as its reason.
    global_request_id
        What the client called it; empty for nothing.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    volume = models.ForeignKey(
        Volume, models.CASCADE, null=True, related_name="operations"
    )
    snapshot = models.ForeignKey(
        Snapshot, models.CASCADE, null=True, related_name="operations"
    )
    verb = models.CharField(max_length=16)
    generation = models.PositiveIntegerField()
    acts = models.JSONField()
    step = models.PositiveIntegerField(default=0)
    back = models.BooleanField(default=False)
    before = models.CharField(max_length=32)
    size = models.PositiveIntegerField()
    data = models.CharField(max_length=128, blank=True)
    borrowed = models.PositiveIntegerField(default=0)
    backend = models.ForeignKey(Backend, models.PROTECT, related_name="operations")
    server = models.ForeignKey(Server, models.PROTECT, null=True)
    job = models.BigIntegerField(null=True)
    jobs = models.JSONField(default=list)
    look_at = models.DateTimeField(null=True)
    looks = models.PositiveIntegerField(default=0)
    userid = models.CharField(max_length=100, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    global_request_id = models.CharField(max_length=64, blank=True)
    result = models.CharField(max_length=16, blank=True)
    why = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    ended = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("volume",),
                condition=Q(ended=None, snapshot=None),
                name="one_verb_of_a_volume",
            ),
            models.UniqueConstraint(
                fields=("snapshot",),
                condition=Q(ended=None, snapshot__isnull=False),
                name="one_verb_of_a_snapshot",
            ),
            models.UniqueConstraint(
                fields=("server",),
                condition=Q(ended=None, volume=None, snapshot=None),
                name="one_verb_of_a_server",
            ),
        )
        indexes = (
            models.Index(
                fields=("backend", "job"),
                condition=Q(ended=None),
                name="operations_by_job",
            ),
            models.Index(
                fields=("data",), condition=Q(ended=None), name="operations_by_data"
            ),
            models.Index(
                fields=("look_at",),
                condition=Q(ended=None),
                name="operations_to_look_at",
            ),
            models.Index(fields=("verb", "result"), name="operations_by_result"),
        )

    def __str__(self) -> str:
        return f"{self.verb} {self.uuid}"

    def task(self) -> Task:
        """Return it as the table of transitions knows it."""
        return Task(
            verb=Verb(self.verb),
            acts=tuple(Act(act) for act in self.acts),
            step=self.step,
            back=self.back,
            before=Status(self.before),
            server=self.server_id,
            size=self.size,
            why=self.why,
        )

    def follow(self, task: Task) -> None:
        """Take over where the task is now."""
        self.step, self.back, self.why = task.step, task.back, task.why

    @property
    def reason(self) -> str:
        """Who asked, and with which requests; it stands in the cluster's job."""
        asked = (self.request_id or str(self.uuid), self.global_request_id)
        who = ":".join(("cloud", self.userid, *filter(None, asked)))
        about = f' {{"snapshot_id": {self.snapshot_id}}}' if self.snapshot_id else ""
        return who + about

    def traced(self) -> AbstractContextManager[None]:
        """Let lines of the log name the request that began it."""
        return tracing.resumed(self.request_id, self.global_request_id)

    @property
    def act(self) -> str:
        """What the cluster is asked for now, of a volume or a server."""
        return self.task().act if self.volume_id else self.acts[self.step]

    @property
    def key(self) -> str:
        """The idempotency key of the step under way."""
        return f"{self.uuid}-{self.step}{'b' if self.back else ''}"


class Outbox(models.Model):
    """A request that some cluster has not answered yet.

    Attributes
    ----------
    request
        See `requests.py`.
    not_before
        When to ask next.
    taken_until
        Until then a worker is asking; None for nobody.
    tries
        How often nobody answered.
    """

    operation = models.OneToOneField(Operation, models.CASCADE, related_name="message")
    backend = models.ForeignKey(Backend, models.CASCADE, related_name="outbox")
    key = models.CharField(max_length=64)
    request = models.JSONField()
    not_before = models.DateTimeField()
    taken_until = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("not_before", "id")
        verbose_name_plural = "outbox"
        indexes = (models.Index(fields=("not_before", "id"), name="outbox_by_time"),)

    def __str__(self) -> str:
        return f"{self.key} to {self.backend}"
