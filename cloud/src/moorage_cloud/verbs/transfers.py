# SPDX-License-Identifier: BSD-2-Clause
"""A volume goes to another project: offered by one, taken by who has the key."""

import secrets

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils.crypto import constant_time_compare, salted_hmac

from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.life import Status
from moorage_cloud.models import Snapshot, Transfer, Volume

from .caller import Caller
from .changing import changing
from .create import check_text
from .quota import charge

KEY_BYTES = 16


def offer(volume: Volume, name: str = "") -> tuple[Transfer, str]:
    """Offer a volume that no server has; return the offer and its key, told once.

    Raises
    ------
    BadRequest
        If its state does not allow it.
    """
    check_text("name", name)
    key, salt = secrets.token_hex(KEY_BYTES), secrets.token_hex(8)
    with changing(volume) as held:
        if held.status != Status.AVAILABLE:
            raise BadRequest(
                f"Invalid volume: status must be available, and is '{held.status}'"
            )
        held.status = Status.AWAITING_TRANSFER
        held.save()
        made = Transfer.objects.create(
            volume=held,
            name=name,
            project=held.project,
            salt=salt,
            secret=_hashed(salt, key),
        )
    return made, key


def offers(who: Caller) -> QuerySet[Transfer]:
    """Return the offers that somebody's project has made; all for administrators."""
    found = Transfer.objects.select_related("volume")
    return found if who.admin else found.filter(project=who.project)


def withdraw(one: Transfer) -> None:
    """Withdraw an offer: the volume stays where it is."""
    with changing(one.volume) as held:
        gone, _ = Transfer.objects.filter(pk=one.pk).delete()
        if gone and held.status == Status.AWAITING_TRANSFER:
            held.status = Status.AVAILABLE
            held.save()


def accept(who: Caller, one: Transfer, key: str) -> Volume:
    """Take a volume, with its snapshots, for the project of who asks.

    Raises
    ------
    BadRequest
        If it is not the key.
    NotFound
        If the offer is gone.
    OverLimit
        If the project's quota does not allow it.
    """
    if not constant_time_compare(one.secret, _hashed(one.salt, key)):
        raise BadRequest(
            f"Invalid auth key: Attempt to transfer {one.uuid} with invalid auth key."
        )
    with changing(one.volume) as held:
        if not Transfer.objects.filter(pk=one.pk).exists():
            raise NotFound(f"Transfer {one.uuid} could not be found.")
        _recount(held, who.project)
        held.snapshots.filter(deleted=False).update(
            project=who.project, userid=who.user
        )
        held.project, held.userid = who.project, who.user
        held.status = Status.AVAILABLE
        held.save()
        Transfer.objects.filter(pk=one.pk).delete()
    return held


def _recount(volume: Volume, project: str) -> None:
    """Count a volume and its snapshots in another project from now on."""
    copies = Snapshot.objects.filter(volume=volume, deleted=False)
    size = copies.order_by().aggregate(Sum("size"))["size__sum"] or 0
    used = {
        "volumes": 1,
        "snapshots": copies.count(),
        "gigabytes": volume.size + size,
    }
    # Always in one order, so that no two wait for each other.
    with transaction.atomic():
        for one in sorted({volume.project, project}):
            sign = 1 if one == project else -1
            more = {name: sign * amount for name, amount in used.items()}
            if volume.project != project:
                charge(one, volume.volume_type.name, **more)


def _hashed(salt: str, key: str) -> str:
    return salted_hmac(salt, key, algorithm="sha256").hexdigest()
