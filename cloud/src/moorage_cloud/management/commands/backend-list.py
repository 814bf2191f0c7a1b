# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage backend-list``: the clusters."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from moorage_cloud.management.command import ListCommand
from moorage_cloud.models import Backend


class Command(ListCommand[Backend]):
    """List the clusters."""

    help = "List the clusters."
    usual = (
        *("id", "clustername", "port", "username", "domains", "servers", "under_way"),
        *("drained", "offline", "stranger"),
    )
    columns = {
        "id": lambda one: one.pk,
        "clustername": lambda one: one.clustername,
        "port": lambda one: one.port,
        "username": lambda one: one.username,
        "domains": lambda one: [domain.name for domain in one.domains.all()],
        "servers": lambda one: one.servers.filter(deleted=False).count(),
        "under_way": lambda one: one.operations.filter(ended=None).count(),
        "drained": lambda one: one.drained,
        "offline": lambda one: one.offline,
        "uuid": lambda one: one.uuid,
        "stranger": lambda one: one.stranger,
    }

    def rows(self, options: Mapping[str, Any]) -> QuerySet[Backend]:
        """Return all of them."""
        del options
        return Backend.objects.prefetch_related("domains")
