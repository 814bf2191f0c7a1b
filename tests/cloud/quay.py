# SPDX-License-Identifier: BSD-2-Clause
"""The service in front of two clusters, and a worker's hands."""

import time
from collections.abc import Sequence

from django.utils import timezone
from towns import PROVIDER, Towns

from moorage_cloud.models import (
    Backend,
    Operation,
    Outbox,
    Server,
    StorageDomain,
    Volume,
    VolumeType,
)
from moorage_cloud.verbs import Caller
from moorage_cloud.work import Doors, look_next, remove_next, send_next

PATIENCE = 30.0
"""Seconds that something may take."""


class Quay:
    """Records of two clusters, their servers and a type, and what a worker does."""

    def __init__(
        self, towns: Towns, features: Sequence[str] = ("moorage-disks",)
    ) -> None:
        self.towns = towns
        self.doors = Doors()
        self.domain = StorageDomain.objects.create(name="shared")
        self.servers: dict[str, Server] = {}
        for name, town in towns.towns.items():
            backend = Backend.objects.create(
                clustername=name,
                address="localhost",
                port=town.port,
                username="keeper",
                password="secret",  # noqa: S106 - of the test's own users
                ca=str(town.ca),
                features=list(features),
            )
            self.domain.backends.add(backend)
            for number in "12":
                self.servers[f"{name}{number}"] = Server.objects.create(
                    name=f"{name}{number}",
                    instance=f"snf-{name}{number}",
                    userid="anna",
                    project="red",
                    backend=backend,
                )
        self.type = VolumeType.objects.create(
            name="fast",
            disk_template=f"ext_{PROVIDER}",
            domain=self.domain,
            is_default=True,
            specs={"GNT-EXTP:access": "userspace"},
        )
        self.anna = Caller("anna", "red", request_id="req-1")

    def settle(self) -> None:
        """Send and look until no verb is under way."""
        end = time.monotonic() + PATIENCE
        while remove_next(self.doors) or Operation.objects.filter(ended=None).exists():
            assert time.monotonic() < end, list(Operation.objects.values())
            Outbox.objects.update(not_before=timezone.now())
            self.send()
            self.towns.let_finish()  # so that no look is in vain
            Operation.objects.exclude(job=None).update(look_at=timezone.now())
            look_next(self.doors)

    def send(self) -> None:
        """Send all that waits."""
        while send_next(self.doors):
            pass

    def look(self) -> None:
        """Look at every job that is due."""
        while look_next(self.doors):
            pass

    def again(self, volume: Volume) -> Volume:
        """Return a volume as it is now."""
        return Volume.objects.select_related("attachment").get(pk=volume.pk)

    def close(self) -> None:
        """Hang up."""
        self.doors.close()
