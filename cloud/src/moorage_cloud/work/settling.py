# SPDX-License-Identifier: BSD-2-Clause
"""From a job's end to the end of a step: heard of, looked at, or judged by what is.

What a cluster says is asked for outside of transactions; what it means is decided
within one, on the volume as it is by then.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from moorage_cloud.clusters import Cluster, ClusterSilent, Job, JobState
from moorage_cloud.conf import CONF
from moorage_cloud.life import Done, Failed
from moorage_cloud.models import Backend, Operation, Server, Snapshot, Volume
from moorage_cloud.requests import Destroy, disk_of, was_done, was_done_with_server
from moorage_cloud.verbs import holding_server, server_request, server_went_on
from moorage_cloud.verbs.asking import Thing, request_of
from moorage_cloud.verbs.changing import changing, changing_snapshot, go_on

from .doors import Connect

LONGEST = 60.0
"""Seconds between two looks at one job, at most."""
_ABOUT = (
    *("backend", "server"),
    *("volume__volume_type", "snapshot__volume__volume_type"),
)
"""What is read together with an operation."""


@contextmanager
def holding(operation: Operation) -> Iterator[tuple[Thing | Server, Operation]]:
    """Hold what an operation is about; yield both as they are now."""
    with _held(thing_of(operation)) as now:
        fresh = Operation.objects.select_related("backend", "server")
        yield now, fresh.get(pk=operation.pk)


def _held(
    thing: Thing | Server,
) -> AbstractContextManager[Volume] | AbstractContextManager[Snapshot | Server]:
    match thing:
        case Volume():
            return changing(thing)
        case Snapshot():
            return changing_snapshot(thing)
        case Server():
            return holding_server(thing)


def thing_of(operation: Operation) -> Thing | Server:
    """Return the volume, the snapshot or the server that an operation is about."""
    thing = operation.snapshot or operation.volume or operation.server
    assert thing is not None  # noqa: S101 - one of them is
    return thing


def ended(thing: Thing | Server, operation: Operation, event: Done | Failed) -> None:
    """Let the end of a step take effect on what is held."""
    if isinstance(thing, Server):
        server_went_on(thing, operation, event)
    else:
        go_on(thing, operation, event)


def verdict(operation: Operation, job: Job, cluster: Cluster) -> Done | Failed | None:
    """Return what the end of a step's job means; None while it is under way.

    A job that failed, or that the cluster knows no more, is judged by what is there.

    Raises
    ------
    ClusterSilent
        If that cannot be seen now.
    """
    if job.state is JobState.UNDER_WAY:
        return None
    now = (operation.generation, operation.step, operation.back)
    if job.state is JobState.DONE:
        return Done(*now)
    if job.state is JobState.FAILED and not job.why and operation.job is not None:
        job = cluster.job(operation.job)  # the feed does not say why
    if _was_done(operation, cluster, failed=job.state is JobState.FAILED):
        return Done(*now)
    why = job.why or f"its cluster does not know job {operation.job}"
    return Failed(*now, why, off=_has_left(operation, cluster))


def _has_left(operation: Operation, cluster: Cluster) -> bool:
    """Whether a server has its volume no more, and nobody else has."""
    if operation.volume is None or operation.snapshot or operation.server is None:
        return False
    disk = cluster.disk(operation.volume.backend_volume_uuid)
    return disk is None or disk.instance is None


def _was_done(operation: Operation, cluster: Cluster, *, failed: bool) -> bool:
    """Whether what was asked for is so, although the job failed, or is not known."""
    thing = thing_of(operation)
    if isinstance(thing, Server):
        known = {one.name: one.status for one in cluster.instances()}
        asked = server_request(operation)
        return was_done_with_server(asked, known.get(asked.instance))
    request = request_of(thing, operation)
    if failed and isinstance(request, Destroy):
        return False  # a disk that is not there was forgotten by hand: its data stays
    disk = cluster.disk(disk_of(request))
    return was_done(
        request,
        there=disk is not None,
        instance=disk.instance if disk else None,
        size=disk.size if disk else 0,
        epoch=disk.epoch if disk else 0,
    )


def settle(operation: Operation, job: Job, cluster: Cluster) -> bool:
    """Let the end of a step's job take effect; return whether it had ended."""
    event = verdict(operation, job, cluster)
    if event is None:
        return False
    with holding(operation) as (thing, fresh):
        if fresh.job == operation.job and fresh.ended is None:
            ended(thing, fresh, event)
    return True


def forget_jobs(backend: Backend, cluster: Cluster) -> None:
    """Judge by what there is whatever waits for a job: their numbers mean others now.

    Nobody knows how they ended, and that a new cluster lacks a disk does not mean that
    its data was destroyed: they count as failed.

    Raises
    ------
    ClusterSilent
        If that cannot be seen now; what was judged by then stays so.
    """
    under_way = Operation.objects.filter(backend=backend, ended=None)
    waiting = under_way.exclude(job=None).select_related(*_ABOUT)
    lost = Job(JobState.FAILED, "its cluster was made anew")
    for operation in waiting:
        settle(operation, lost, cluster)


def look_next(connect: Connect) -> bool:
    """Look at the job that is due first; return whether there was one."""
    operation = _due()
    if operation is None or operation.job is None:
        return False
    try:
        cluster = connect(operation.backend)
        settle(operation, cluster.job(operation.job), cluster)
    except ClusterSilent:
        # It holds its volumes until it answers, or is off. Its other jobs are looked at
        # no sooner: they would take as long, and other clusters' would wait for them.
        operation.refresh_from_db(fields=["look_at"])
        waiting = Operation.objects.filter(backend=operation.backend, ended=None)
        waiting.filter(look_at__lt=operation.look_at).update(look_at=operation.look_at)
    return True


def _due() -> Operation | None:
    """Return an operation whose job is to be looked at; the next look is later."""
    now = timezone.now()
    due = Operation.objects.filter(ended=None, look_at__lte=now, backend__offline=False)
    if not due.exists():
        return None  # without the lock that a transaction takes
    with transaction.atomic():
        found = (
            due.select_for_update(skip_locked=True, of=("self",))
            .select_related(*_ABOUT)
            .order_by("look_at")
            .first()
        )
        if found is None:
            return None
        found.looks += 1
        wait = min(CONF.look_after * 2**found.looks, max(LONGEST, CONF.look_after))
        found.look_at = now + timedelta(seconds=wait)
        found.save(update_fields=["looks", "look_at"])
    return found
