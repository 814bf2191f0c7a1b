# SPDX-License-Identifier: BSD-2-Clause
"""What users are told of verbs that failed: written with the failure, kept a month."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from moorage_cloud.models import Message, Operation, Snapshot, Volume

from .caller import Caller

LASTS = timedelta(days=30)
VOLUME, SNAPSHOT = "VOLUME", "VOLUME_SNAPSHOT"


def leave_message(thing: Volume | Snapshot, operation: Operation, why: str) -> None:
    """Tell whose it is why something could not be done; what is too old goes."""
    now = timezone.now()
    Message.objects.filter(expires__lt=now).delete()
    Message.objects.create(
        project=thing.project,
        request_id=operation.request_id,
        resource=VOLUME if isinstance(thing, Volume) else SNAPSHOT,
        resource_uuid=thing.uuid,
        verb=operation.verb,
        why=why,
        expires=now + LASTS,
    )


def messages(who: Caller) -> QuerySet[Message]:
    """Return what somebody is told."""
    found = Message.objects.filter(expires__gte=timezone.now())
    return found if who.admin else found.filter(project=who.project)


def drop_message(message: Message) -> None:
    """Tell it no more."""
    message.delete()
