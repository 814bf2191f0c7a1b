# SPDX-License-Identifier: BSD-2-Clause
"""Copies in time of volumes."""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F

from moorage_cloud.life import Delete, Status
from moorage_cloud.models import Snapshot, Volume

from .asking import has_data
from .caller import Caller
from .changing import begin, changing, changing_snapshot
from .checks import check_metadata, check_text
from .copies import begin_copy, check_copied
from .quota import charge
from .reach import lender


def take_snapshot(
    who: Caller,
    volume: Volume,
    *,
    name: str = "",
    description: str = "",
    metadata: Mapping[str, str] | None = None,
) -> Snapshot:
    """Take a snapshot of a volume; it is the volume's project's.

    Raises
    ------
    BadRequest
        If its state does not allow it.
    OverLimit
        If the project's quota does not allow it.
    Unavailable
        If no server has it, and no cluster can have it now.
    """
    check_text("name", name)
    check_text("description", description)
    check_metadata(metadata or {})
    with changing(volume) as held:
        check_copied(held)
        charge(held.project, held.volume_type.name, snapshots=1, gigabytes=held.size)
        Volume.objects.filter(pk=held.pk).update(
            snapshot_counter=F("snapshot_counter") + 1
        )
        snapshot = Snapshot.objects.create(
            volume=held,
            name=name,
            description=description,
            userid=who.user,
            project=held.project,
            size=held.size,
            number=held.snapshot_counter + 1,
            metadata=dict(metadata or {}),
            status=Status.CREATING if has_data(held) else Status.AVAILABLE,
        )
        if has_data(held):
            begin_copy(who, snapshot, held)
    return snapshot


def delete_snapshot(who: Caller, snapshot: Snapshot) -> None:
    """Delete a snapshot and its data; one that is being deleted is left alone.

    Raises
    ------
    BadRequest
        If its state does not allow it.
    Unavailable
        If no cluster can remove its data now.
    """
    with transaction.atomic(), changing_snapshot(snapshot) as held:
        if held.status in {Status.DELETING, Status.DELETED}:
            return
        by = lender(held.volume) if held.initialized else None
        server = by.server if by else None
        begin(held, Delete(server.pk if server else None), who, by)
