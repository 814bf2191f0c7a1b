# SPDX-License-Identifier: BSD-2-Clause
"""Servers that are to go: when nothing is attached to one, its instance is removed."""

from django.db.models import Exists, OuterRef

from moorage_cloud.clusters import Cluster, ClusterSilent
from moorage_cloud.models import Operation, Server
from moorage_cloud.verbs import go_on_removing

from .doors import Connect


def remove_next(connect: Connect) -> bool:
    """Go on with removals that wait for nothing; return whether there was one."""
    waits = Operation.objects.filter(ended=None).filter(
        volume__attachment__server=OuterRef("pk")
    )
    asked = Operation.objects.filter(
        ended=None, server=OuterRef("pk"), volume=None, snapshot=None
    )
    due = Server.objects.filter(
        ~Exists(waits),
        ~Exists(asked),
        removal__isnull=False,
        deleted=False,
        backend__offline=False,
    )
    went_on, silent = False, set[int]()
    for server in due.select_related("backend"):
        if server.backend_id in silent:
            continue
        try:
            disks = _disks_of(server, connect(server.backend))
        except ClusterSilent:  # it holds its servers until it answers, or is off
            silent.add(server.backend_id)
            continue
        go_on_removing(server, disks)
        went_on = True
    return went_on


def _disks_of(server: Server, cluster: Cluster) -> tuple[str, ...] | None:
    named = {one.name: one.disks for one in cluster.instances()}
    return named.get(server.instance)
