# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster's feed tells, in order; how far, is kept after what it changed."""

import time
from collections.abc import Mapping

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from moorage_cloud.clusters import Cluster, Heard, Job
from moorage_cloud.life import Done, Failed
from moorage_cloud.models import Backend, Operation, Outbox

from .settling import ended, holding, verdict

_PAUSE = 0.02
"""Seconds between two looks whether a job's number was noted."""


def hear(
    backend: Backend, heard: Heard, cluster: Cluster, patience: float = 0.0
) -> None:
    """Let an entry of a cluster's feed take effect.

    What belongs to no step under way changes nothing but the number, and so does what
    is told again. After a reset every job of this cluster is looked at.

    Each verb goes on by a transaction of its own: one for all of them would hold a
    project's quota while it waits for the next volume.

    Parameters
    ----------
    patience
        Seconds to wait for a sender that may be about to note one of these jobs: a
        cluster can be faster in telling of its end than we are in writing it down.

    Raises
    ------
    ClusterSilent
        If what is there cannot be seen now; the entry is to be told again.
    """
    if heard.jobs:
        _let_senders_note(backend, heard.jobs, patience)
    events = _events(backend, heard.jobs, cluster)
    for operation, event in events:
        with holding(operation) as (thing, fresh):
            if fresh.job == operation.job and fresh.ended is None:
                ended(thing, fresh, event)
    _keep_number(backend, heard)
    backend.event_number = heard.number


def _keep_number(backend: Backend, heard: Heard) -> None:
    """Write down how far the feed was heard, if no other worker was further."""
    known = Backend.objects.filter(pk=backend.pk)
    if not heard.reset:
        behind = Q(event_number=None) | Q(event_number__lt=heard.number)
        known.filter(behind).update(event_number=heard.number)
        return
    with transaction.atomic():
        under_way = Operation.objects.filter(backend=backend, ended=None)
        under_way.exclude(job=None).update(look_at=timezone.now())
        known.update(event_number=heard.number)


def _events(
    backend: Backend, jobs: Mapping[int, Job], cluster: Cluster
) -> list[tuple[Operation, Done | Failed]]:
    about = Operation.objects.filter(
        backend=backend, ended=None, job__in=list(jobs)
    ).select_related(
        "backend", "server", "volume__volume_type", "snapshot__volume__volume_type"
    )
    found = []
    for operation in about:
        assert operation.job is not None  # noqa: S101 - it was found by it
        event = verdict(operation, jobs[operation.job], cluster)
        if event is not None:
            found.append((operation, event))
    return found


def _let_senders_note(
    backend: Backend, jobs: Mapping[int, Job], patience: float
) -> None:
    end = time.monotonic() + patience
    known = Operation.objects.filter(backend=backend, job__in=list(jobs))
    sending = Outbox.objects.filter(backend=backend, taken_until__gt=timezone.now())
    while time.monotonic() < end and known.count() < len(jobs) and sending.exists():
        time.sleep(_PAUSE)
