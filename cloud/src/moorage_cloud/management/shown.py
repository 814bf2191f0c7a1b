# SPDX-License-Identifier: BSD-2-Clause
"""What administrators are shown of volumes and servers."""

from moorage_cloud.identity.models import Project, User
from moorage_cloud.models import Server, Snapshot, Volume, VolumeType
from moorage_cloud.verbs import under_way


def state(volume: Volume | Snapshot) -> str:
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
        "username": _username(volume.userid),
        "project": volume.project,
        "project_name": _project_name(volume.project),
        "shared_to_project": False,
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


def snapshot_facts(snapshot: Snapshot) -> dict[str, object]:
    """Return what is on record of a snapshot."""
    operation = under_way(snapshot)
    return {
        "id": snapshot.pk,
        "uuid": snapshot.uuid,
        "size": snapshot.size,
        "volume_id": snapshot.volume_id,
        "userid": snapshot.userid,
        "username": _username(snapshot.userid),
        "project": snapshot.project,
        "project_name": _project_name(snapshot.project),
        "name": snapshot.name,
        "description": snapshot.description,
        "state": state(snapshot),
        "fault": snapshot.fault or None,
        "initialized": snapshot.initialized,
        "backend_snapshot_name": snapshot.backend_snapshot_name,
        "deleted": snapshot.deleted,
        "verb": operation.verb if operation else None,
        "backendjobid": operation.job if operation else None,
    }


def type_facts(kind: VolumeType) -> dict[str, object]:
    """Return what is on record of a type."""
    return {
        "id": kind.pk,
        "uuid": kind.uuid,
        "name": kind.name,
        "description": kind.description,
        "disk_template": kind.disk_template,
        "pool": kind.pool or None,
        "domain": kind.domain,
        "detachable": kind.detachable,
        "public": kind.is_public,
        "default": kind.is_default,
        "volumes": kind.volumes.filter(deleted=False).count(),
        "deleted": kind.deleted,
        "specs": kind.specs,
    }


def _username(userid: str) -> str | None:
    return User.objects.filter(pk=userid).values_list("name", flat=True).first()


def _project_name(project: str) -> str | None:
    return Project.objects.filter(pk=project).values_list("name", flat=True).first()


def server_facts(server: Server) -> dict[str, object]:
    """Return what is on record of a server."""
    return {
        "id": server.pk,
        "uuid": server.uuid,
        "name": server.name,
        "userid": server.userid,
        "username": _username(server.userid),
        "project": server.project,
        "project_name": _project_name(server.project),
        "backend": server.backend,
        "instance": server.instance,
        "operstate": server.operstate,
        "action": server.action or None,
        "fault": server.fault or None,
        "helper": server.helper,
        "deleted": server.deleted,
    }
