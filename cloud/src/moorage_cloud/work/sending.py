# SPDX-License-Identifier: BSD-2-Clause
"""What stands in the outbox goes to its cluster.

A worker takes a message for a while, asks outside of any transaction, and writes down
the job. If it dies in between, the next one asks again with the same key, and the
cluster makes no second job.
"""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from moorage_cloud.clusters import ClusterRefused, ClusterSilent
from moorage_cloud.conf import CONF
from moorage_cloud.life import Failed
from moorage_cloud.models import Operation, Outbox
from moorage_cloud.requests import from_json

from .doors import Connect
from .settling import ended, holding

_LOG = logging.getLogger(__name__)
LONGEST = 60.0
"""Seconds between two tries, at most."""


def send_next(connect: Connect) -> bool:
    """Send the message that waits longest; return whether there was one."""
    message = _taken()
    if message is None:
        return False
    with message.operation.traced():
        _send(connect, message)
    return True


def _send(connect: Connect, message: Outbox) -> None:
    operation = message.operation
    told = {"told": {"operation": str(operation.uuid)}}
    try:
        cluster = connect(message.backend)
        job = cluster.submit(from_json(message.request), message.key, operation.reason)
    except ClusterRefused as refusal:
        _LOG.info("cluster %s refuses: %s", message.backend, refusal, extra=told)
        _refused(message, str(refusal))
    except ClusterSilent as silence:
        _LOG.warning(
            "cluster %s does not answer: %s", message.backend, silence, extra=told
        )
        _later(message)
    else:
        _LOG.info(
            "cluster %s has job %d for %s", message.backend, job, operation, extra=told
        )
        _made(message, job)


def _taken() -> Outbox | None:
    now = timezone.now()
    earlier = Operation.objects.filter(
        ended=None, backend__offline=False, pk__lt=OuterRef("operation")
    )
    # What is done with one helper goes in a row: it has few slots.
    helped = earlier.filter(server__helper=True, server=OuterRef("operation__server"))
    # So does what is done with one volume: a cluster may have it to make a copy.
    busy = earlier.exclude(data="").filter(data=OuterRef("operation__data"))
    waiting = Outbox.objects.filter(
        Q(taken_until=None) | Q(taken_until__lte=now),
        ~Exists(helped),
        ~Exists(busy),
        not_before__lte=now,
        backend__offline=False,
    )
    if not waiting.exists():
        return None  # without the lock that a transaction takes
    with transaction.atomic():
        found = (
            waiting.select_for_update(skip_locked=True, of=("self",))
            .select_related("backend", "operation")
            .first()
        )
        if found:
            found.taken_until = now + timedelta(seconds=CONF.lease)
            found.save(update_fields=["taken_until"])
    return found


def _made(message: Outbox, job: int) -> None:
    with holding(message.operation) as (_, operation):
        if operation.ended is None and operation.key == message.key:
            operation.job = job
            operation.jobs.append([operation.act, job])
            operation.look_at = timezone.now() + timedelta(seconds=CONF.look_after)
            operation.save(update_fields=["job", "jobs", "look_at"])
            Outbox.objects.filter(pk=message.pk).delete()


def _refused(message: Outbox, why: str) -> None:
    with holding(message.operation) as (thing, operation):
        if operation.ended is None and operation.key == message.key:
            now = (operation.generation, operation.step, operation.back)
            ended(thing, operation, Failed(*now, why))


def _later(message: Outbox) -> None:
    """Ask that cluster again later; what else it is to be asked for waits as long.

    Else each of its messages would take the time in which nobody answers, and other
    clusters would wait for all of them.
    """
    wait = min(2.0**message.tries, LONGEST)
    then = timezone.now() + timedelta(seconds=wait)
    Outbox.objects.filter(pk=message.pk).update(
        tries=message.tries + 1, taken_until=None
    )
    for_it = Outbox.objects.filter(backend=message.backend, not_before__lt=then)
    for_it.update(not_before=then)
