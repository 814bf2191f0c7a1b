# SPDX-License-Identifier: BSD-2-Clause
"""A volume goes to another project: one offers it, and who has the key takes it."""

import hashlib
import hmac
import secrets

from django.db import transaction
from django.db.models import QuerySet

from moorage_cloud.errors import BadRequest, NotFound
from moorage_cloud.life import Status
from moorage_cloud.models import Operation, Transfer, Volume

from .asking import name_of
from .caller import Caller
from .changing import changing
from .checks import check_text
from .quota import charge, used_by
from .story import What, tell


def offer(who: Caller, volume: Volume, name: str = "") -> tuple[Transfer, str]:
    """Offer a volume; return the offer and its key, which is told this once.

    Raises
    ------
    BadRequest
        If the volume is not available, or is being copied.
    """
    check_text("name", name)
    with changing(volume) as held:
        if held.status != Status.AVAILABLE:
            raise BadRequest(f"Invalid volume: status must be available ({held.uuid})")
        if Operation.objects.filter(ended=None, data=name_of(held)).exists():
            raise BadRequest(
                f"Invalid volume: a copy of volume {held.uuid} is being made"
            )
        held.status = Status.AWAITING_TRANSFER
        held.save()
        key, salt = secrets.token_hex(8), secrets.token_hex(4)
        made = Transfer.objects.create(
            volume=held,
            name=name,
            project=held.project,
            salt=salt,
            secret=_hashed(salt, key),
        )
        tell(held, What.OFFER, who)
    return made, key


def accept(who: Caller, transfer: Transfer, key: str) -> Volume:
    """Take an offered volume, with its snapshots; the taker's quota counts them.

    Raises
    ------
    BadRequest
        If the key is not the offer's.
    OverLimit
        If the taker's quota does not allow it.
    """
    if not hmac.compare_digest(_hashed(transfer.salt, key), transfer.secret):
        raise BadRequest("Attempt to transfer the volume with invalid auth key")
    with changing(transfer.volume) as held:
        _check_offered(transfer, held)
        used, kind = used_by(held), held.volume_type.name
        # Always in one order, so that no two wait for each other.
        for project in sorted({held.project, who.project}):
            sign = (project == who.project) - (project == held.project)
            charge(project, kind, **{name: sign * one for name, one in used.items()})
        copies = held.snapshots.filter(deleted=False)
        copies.update(project=who.project, userid=who.user)
        held.project, held.userid = who.project, who.user
        held.status = Status.AVAILABLE
        held.save()
        tell(held, What.TRANSFER, who)
        transfer.delete()
    return held


def offers(who: Caller) -> QuerySet[Transfer]:
    """Return the offers that somebody can see: those of their project."""
    found = Transfer.objects.select_related("volume")
    return found if who.admin else found.filter(project=who.project)


def withdraw(who: Caller, transfer: Transfer) -> None:
    """Take an offer back; the volume is available again."""
    with transaction.atomic(), changing(transfer.volume) as held:
        _check_offered(transfer, held)
        held.status = Status.AVAILABLE
        held.save()
        tell(held, What.WITHDRAW, who)
        transfer.delete()


def _check_offered(transfer: Transfer, held: Volume) -> None:
    """Refuse an offer that somebody was faster with, or that is over."""
    there = Transfer.objects.filter(pk=transfer.pk).exists()
    if not there or held.status != Status.AWAITING_TRANSFER:
        raise NotFound(f"Transfer {transfer.uuid} could not be found.")


def _hashed(salt: str, key: str) -> str:
    found = hashlib.scrypt(key.encode(), salt=salt.encode(), n=2**12, r=8, p=1)
    return found.hex()
