# SPDX-License-Identifier: BSD-2-Clause
"""What administrators alone do: data becomes a volume, a cluster is used no more."""

from django.db import transaction

from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest, Conflict
from moorage_cloud.life import Status
from moorage_cloud.models import (
    Attachment,
    Backend,
    Operation,
    Server,
    Snapshot,
    Volume,
)

from .attach import check_detachable
from .caller import Caller
from .check import check_data
from .create import NewVolume, create
from .story import What, tell

_NAME = 128
"""Characters that a name in a storage has at most."""


def import_volume(who: Caller, new: NewVolume, name: str) -> Volume:
    """Put what a storage has on record as a volume, and have a cluster look for it.

    The volume is in error until a cluster has found the data.

    Parameters
    ----------
    name
        What the storage calls it; no volume of this service may have it.

    Raises
    ------
    BadRequest
        If the name is none, or something of the volume cannot be.
    Conflict
        If it is a volume's already.
    OverLimit
        If the project's quota does not allow it.
    Unavailable
        If no cluster can look.
    """
    check_detachable(new.volume_type)
    if not 1 <= len(name) <= _NAME or not name.isprintable() or "/" in name:
        raise BadRequest(f"'{name}' is no name of a volume in a storage")
    if name.startswith((f"{CONF.prefix}vol-", f"{CONF.prefix}snap-")):
        raise BadRequest(
            f"'{name}' is a name that this service gives: a later volume would have it"
        )
    with transaction.atomic():
        if Volume.objects.filter(
            legacy_backend_volume_uuid=name, deleted=False
        ).exists():
            raise Conflict(f"there is a volume '{name}' already")
        volume = create(who, new)
        volume.legacy_backend_volume_uuid = name
        volume.initialized = True
        volume.status = Status.ERROR
        volume.save()
        tell(volume, What.IMPORT, who, why=f"of '{name}'")
        check_data(who, volume)
    return volume


def forget_backend(backend: Backend) -> int:
    """Use a cluster no more; return how many servers go from the record with it.

    Nothing is asked of the cluster: its instances stay what they are there.

    Raises
    ------
    Conflict
        If one of its servers has a volume, something is under way there, or no other
        cluster sees the data of some volume.
    """
    with transaction.atomic():
        held = Backend.objects.select_for_update().get(pk=backend.pk)
        _check_idle(held)
        _check_no_data(held)
        servers = Server.objects.filter(backend=held)
        count = servers.filter(deleted=False).count()
        Volume.objects.filter(backend=held).update(backend=None)
        Operation.objects.filter(backend=held).delete()
        servers.delete()
        held.delete()
    return count


def _check_idle(backend: Backend) -> None:
    place = Attachment.objects.filter(server__backend=backend).first()
    if place:
        raise Conflict(
            f"server {place.server_id} of backend {backend} has volume "
            f"{place.volume_id}: detach it first"
        )
    operation = Operation.objects.filter(backend=backend, ended=None).first()
    if operation:
        raise Conflict(f"backend {backend} is asked for something: {operation}")


def _check_no_data(backend: Backend) -> None:
    """Refuse if what is left sees less data than before."""
    domains = [one.pk for one in backend.domains.all() if one.backends.count() == 1]
    stored = Volume.objects.filter(deleted=False, initialized=True)
    kept = stored.filter(volume_type__domain=None, backend=backend)
    kept |= stored.filter(volume_type__domain__in=domains)
    copies = Snapshot.objects.filter(deleted=False, initialized=True)
    only = copies.filter(volume__volume_type__domain=None, volume__backend=backend)
    only |= copies.filter(volume__volume_type__domain__in=domains)
    found: Volume | Snapshot | None = kept.first() or only.first()
    if found:
        raise Conflict(
            f"no other cluster sees the data of {type(found).__name__.lower()} "
            f"{found.pk}, which backend {backend} has"
        )
