# SPDX-License-Identifier: BSD-2-Clause
"""Servers: instances of clusters that volumes are attached to."""

import uuid

from django.db import models

from .backend import Backend


class Server(models.Model):
    """An instance of one of the clusters.

    Attributes
    ----------
    instance
        Its name there.
    helper
        Whether it only lends its cluster: it is stopped, and nobody's.
    operstate
        ``BUILD``, ``STARTED``, ``STOPPED``, ``ERROR`` or ``DESTROYED``.
    action
        What is under way with it; empty for nothing.
    removal
        Since when it is to be removed; None while nobody wants that.
    names_taken
        Whether its volumes have the names that its cluster knew before this service.
    fault
        What the last thing that was done with it failed with.
    """

    class State(models.TextChoices):
        """How it does."""

        BUILD = "BUILD"
        STARTED = "STARTED"
        STOPPED = "STOPPED"
        ERROR = "ERROR"
        DESTROYED = "DESTROYED"

    class Action(models.TextChoices):
        """What a cluster is asked to do with it."""

        BUILD = "BUILD"
        START = "START"
        STOP = "STOP"
        REBOOT = "REBOOT"
        HARD_REBOOT = "HARD_REBOOT"
        DESTROY = "DESTROY"

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=255)
    userid = models.CharField(max_length=100, db_index=True)
    project = models.CharField(max_length=255, db_index=True)
    backend = models.ForeignKey(Backend, models.PROTECT, related_name="servers")
    instance = models.CharField(max_length=255)
    helper = models.BooleanField(default=False)
    operstate = models.CharField(
        max_length=16, choices=State.choices, default=State.STARTED
    )
    action = models.CharField(max_length=16, blank=True)
    removal = models.DateTimeField(null=True)
    names_taken = models.BooleanField(default=False)
    fault = models.TextField(blank=True)
    deleted = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("backend", "instance"),
                condition=models.Q(deleted=False),
                name="one_server_of_an_instance",
            ),
        )

    def __str__(self) -> str:
        return self.name
