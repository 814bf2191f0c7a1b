# SPDX-License-Identifier: BSD-2-Clause
"""Which clusters see a volume's storage, and which of them is to be asked."""

from django.db.models import QuerySet

from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest, BuildInProgress, Forbidden, Unavailable
from moorage_cloud.models import Backend, Image, Operation, Server, Volume

from .asking import Stored
from .changing import By


def backends_of(stored: Stored) -> QuerySet[Backend]:
    """Return the clusters that can have a volume's data, a snapshot's or an image's.

    Where no second cluster sees its storage, it is the one that made it.
    """
    domain, last = stored.volume_type.domain, _last(stored)
    if domain is not None:
        return domain.backends.all()
    if last is not None:
        return Backend.objects.filter(pk=last.pk)
    return Backend.objects.all()


def _last(stored: Stored) -> Backend | None:
    """Return the cluster that had the data last, as far as that is known."""
    return None if isinstance(stored, Image) else stored.backend


def check_reaches(volume: Volume, server: Server) -> None:
    """Refuse a server whose cluster does not see the storage of a volume."""
    if backends_of(volume).filter(pk=server.backend_id).exists():
        return
    kind = volume.volume_type
    if kind.domain is None:
        raise BadRequest(
            f"volume {volume.uuid} is on a cluster whose storage no other one sees; "
            f"server {server.uuid} is on another"
        )
    raise BadRequest(
        f"volume {volume.uuid} and server {server.uuid} must have the same volume "
        f"template: the server's cluster does not see the storage of type '{kind.name}'"
    )


def check_server(server: Server) -> None:
    """Refuse a server that cannot get or lose a disk now."""
    if server.helper:
        raise Forbidden(f"server {server.uuid} only lends its cluster: it has no users")
    if server.operstate == Server.State.BUILD:
        raise BuildInProgress(f"server {server.uuid} is being built")
    if server.action:
        raise BadRequest(
            f"server {server.uuid} has a pending action: {server.action.lower()}"
        )
    if server.deleted or server.operstate in {"ERROR", "DESTROYED"}:
        raise BadRequest(f"server {server.uuid} is in state {server.operstate}")
    if server.backend.offline:
        raise Unavailable(f"the cluster of server {server.uuid} is off")


def check_takes(server: Server) -> None:
    """Refuse a server whose cluster is to be emptied."""
    if server.backend.drained:
        raise Unavailable(f"the cluster of server {server.uuid} takes nothing new")


def check_slot(server: Server) -> None:
    """Refuse one more disk than an instance can have."""
    # Its own disk, which it starts from, counts.
    if server.attachments.exclude(index=0).count() + 1 >= CONF.max_disks:
        raise BadRequest(
            f"server {server.uuid} has {CONF.max_disks} disks: no more are possible"
        )


def lender(stored: Stored) -> By:
    """Return who can work on what is detached: the cluster that had it last.

    Else another one that sees its storage. One that cannot have a disk without an
    instance does it with a stopped server that is there for that.

    Raises
    ------
    Unavailable
        If none can.
    """
    known, last = backends_of(stored).filter(offline=False), _last(stored)
    for backend in sorted(known, key=lambda one: (one.drained, one != last)):
        if backend.adopts:
            return By(backend)
        helper = _helper(backend)
        if helper:
            return By(backend, helper)
    raise Unavailable(
        f"no cluster that sees the storage of {type(stored).__name__.lower()} "
        f"{stored.uuid} is on and can have a disk without an instance, or has a "
        "stopped helper server"
    )


def _helper(backend: Backend) -> Server | None:
    """Return the helper with the least to do."""
    if backend.drained:
        return None
    helpers = backend.servers.filter(
        helper=True, deleted=False, operstate=Server.State.STOPPED, action=""
    )
    return min(
        helpers,
        key=lambda one: Operation.objects.filter(server=one, ended=None).count(),
        default=None,
    )
