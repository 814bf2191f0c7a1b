# SPDX-License-Identifier: BSD-2-Clause
"""What administrators are shown of volumes and servers."""

from moorage_cloud.models import Server, Volume
from moorage_cloud.verbs import under_way


def state(volume: Volume) -> str:
    """Return the status in the administrators' spelling.

    >>> state(Volume(status="in-use"))
    'IN_USE'
    """
    return volume.status.upper().replace("-", "_")


def facts(volume: Volume) -> dict[str, object]:
    """Return what is on record of a volume."""
    kind, place = volume.volume_type, volume.place
    operation = under_way(volume)
    return {
        "id": volume.pk,
        "uuid": volume.uuid,
        "size": volume.size,
        "source": volume.source,
        "disk_template": kind.template,
        "disk_provider": kind.provider or None,
        "server_id": place.server_id if place else None,
        "userid": volume.userid,
        "project": volume.project,
        "index": place.index if place else None,
        "name": volume.name,
        "state": state(volume),
        "fault": volume.fault or None,
        "initialized": volume.initialized,
        "backend_volume_uuid": volume.backend_volume_uuid,
        "delete_on_termination": volume.delete_on_termination,
        "deleted": volume.deleted,
        "verb": operation.verb if operation else None,
        "backendjobid": operation.job if operation else None,
    }


def server_facts(server: Server) -> dict[str, object]:
    """Return what is on record of a server."""
    return {
        "id": server.pk,
        "uuid": server.uuid,
        "name": server.name,
        "userid": server.userid,
        "project": server.project,
        "backend": server.backend,
        "instance": server.instance,
        "operstate": server.operstate,
        "action": server.action or None,
        "fault": server.fault or None,
        "helper": server.helper,
        "deleted": server.deleted,
    }
