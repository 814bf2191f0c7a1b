# SPDX-License-Identifier: BSD-2-Clause
"""Which clusters see a volume's storage, and which of them is to be asked."""

from django.db.models import QuerySet

from moorage_cloud.errors import Unavailable
from moorage_cloud.models import Backend, Image, Operation, Server

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
