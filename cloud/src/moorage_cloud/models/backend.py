# SPDX-License-Identifier: BSD-2-Clause
"""Clusters, and which of them see the same storage."""

from django.db import models


class Backend(models.Model):
    """A cluster behind its RAPI door.

    Attributes
    ----------
    clustername
        What people call it.
    uuid
        The cluster's own; empty if it was never asked. Who answers with another one is
        not listened to: the numbers of its jobs mean other jobs.
    stranger
        The uuid of another cluster that answers in its place; empty for none.
    address, port
        Of its door; without an address it is the name.
    username, password
        Of the service there. Its role is ``adopt``: it may take over what a provider
        has by the name of a disk.
    ca
        A file with the authority that the door's certificate is to be signed by; empty
        for the system's.
    drained
        Whether nothing new is to go there; what is there can still be taken off.
    offline
        Whether an administrator has said that it is off: nobody writes there.
    features
        What it told when it was added or looked at last.
    heard
        When its feed was last listened to with success; None for never.
    event_number
        The entry of its feed up to which everything is in this database.
    """

    clustername = models.CharField(max_length=128, unique=True)
    uuid = models.CharField(max_length=64, blank=True)
    stranger = models.CharField(max_length=64, blank=True)
    address = models.CharField(max_length=255, blank=True)
    port = models.PositiveIntegerField(default=5080)
    username = models.CharField(max_length=64, blank=True)
    password = models.CharField(max_length=256, blank=True)
    ca = models.CharField(max_length=512, blank=True)
    drained = models.BooleanField(default=False)
    offline = models.BooleanField(default=False)
    features = models.JSONField(default=list)
    heard = models.DateTimeField(null=True)
    event_number = models.BigIntegerField(null=True)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.clustername

    @property
    def host(self) -> str:
        """Where its door is."""
        return self.address or self.clustername

    @property
    def adopts(self) -> bool:
        """Whether it can have a volume as a disk that no instance has."""
        return "moorage-disks" in self.features


class StorageDomain(models.Model):
    """Storage that some clusters see: a volume can go to each of them."""

    name = models.CharField(max_length=64, unique=True)
    backends = models.ManyToManyField(Backend, related_name="domains")

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
