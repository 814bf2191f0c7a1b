# SPDX-License-Identifier: BSD-2-Clause
"""``/metrics``: what a process counts, and what the database knows, for Prometheus.

Whoever is asked tells the same of what is in the database. None of the labels grows
with volumes, servers or users.
"""

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from django.db import Error
from django.db.models import Count, F, Max, Min, Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage_cloud import tracing
from moorage_cloud.api.wire.counted import counted
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend, Heartbeat, Operation, Outbox, Volume
from moorage_cloud.verbs import quota

_LOG = logging.getLogger(__name__)
SHORTEST = 16
"""Characters of a key, at least."""
_EVERY = 600.0
"""Seconds between two comparisons of quota with all that is there."""
_LATE = 60.0
"""Seconds after which a look at a job that was due is told as late."""


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Tell metrics to who has the key; where there is none, nobody has it."""
    tracing.current().route = "/metrics"
    key = _key(CONF.metrics_key_file)
    if not key:
        return HttpResponse("There is no key for metrics.\n", status=404)
    given = request.headers.get("Authorization", "")
    if not constant_time_compare(given, f"Bearer {key}"):
        response = HttpResponse("The key of metrics is asked for.\n", status=401)
        response["WWW-Authenticate"] = "Bearer"
        return response
    known = CollectorRegistry()
    known.register(Database())
    text = generate_latest(counted()) + generate_latest(known)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _key(file: str) -> str:
    """Return the key in a file; empty for no file, and for a key that is no secret."""
    try:
        text = Path(file).read_text().strip() if file else ""
    except OSError as error:
        _LOG.warning("the key of metrics cannot be read: %s", error)
        return ""
    return text if len(text) >= SHORTEST else ""


class Database(Collector):
    """Tells what the database knows, as it is when it is asked."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; of a database that is away, that."""
        try:
            found = list(self._known(timezone.now()))
        except Error:
            found = []
        up = bool(found)
        yield _gauge("database_up", "Whether the database answers (1).", float(up))
        yield from found

    def _known(self, now: datetime) -> Iterator[Metric]:
        yield _counted("volumes", "Volumes, by status.", "status", _volumes())
        yield from _outbox(now)
        yield from _operations(now)
        yield from _clusters(now)
        yield from _workers(now)
        yield _gauge(
            "quota_drifts",
            "Rows of quota that say something else than what there is; looked at every "
            "ten minutes.",
            _drifts(now),
        )


def _gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(f"moorage_cloud_{name}", help_, value=value)


def _counted(
    name: str, help_: str, label: str, found: Iterable[tuple[str, float]]
) -> Metric:
    metric = GaugeMetricFamily(f"moorage_cloud_{name}", help_, labels=(label,))
    for word, number in found:
        metric.add_metric((word,), number)
    return metric


def _volumes() -> Iterable[tuple[str, int]]:
    found = Volume.objects.filter(deleted=False).order_by().values_list("status")
    return found.annotate(Count("pk"))


def _outbox(now: datetime) -> Iterator[Metric]:
    rows = list(
        Outbox.objects.order_by()
        .values_list("backend__clustername")
        .annotate(Count("pk"), Min("operation__created"))
    )
    yield _counted(
        "outbox_messages",
        "Requests that no cluster has answered yet, by cluster.",
        "cluster",
        ((cluster, number) for cluster, number, _ in rows),
    )
    yield _counted(
        "outbox_oldest_seconds",
        "Age of the oldest operation whose request no cluster has answered.",
        "cluster",
        ((cluster, _seconds(now, since)) for cluster, _, since in rows),
    )


def _operations(now: datetime) -> Iterator[Metric]:
    late = Q(look_at__lt=now - timedelta(seconds=_LATE))
    under_way = Operation.objects.filter(ended=None).order_by()
    rows = list(
        under_way.values_list("verb").annotate(
            number=Count("pk"), since=Min("created"), late=Count("pk", filter=late)
        )
    )
    yield _counted(
        "operations_under_way",
        "Operations that have not ended, by verb.",
        "verb",
        ((verb, number) for verb, number, *_ in rows),
    )
    yield _counted(
        "operation_oldest_seconds",
        "Age of the oldest operation that has not ended, by verb.",
        "verb",
        ((verb, _seconds(now, since)) for verb, _, since, _ in rows),
    )
    yield _counted(
        "operations_late",
        "Operations whose job should have been looked at a minute ago, by verb.",
        "verb",
        ((verb, number) for verb, _, _, number in rows),
    )
    ended = CounterMetricFamily(
        "moorage_cloud_operations",
        "Operations that ended, by verb and result.",
        labels=("verb", "result"),
    )
    known = Operation.objects.exclude(result="").order_by()
    for verb, result, number in known.values_list("verb", "result").annotate(
        Count("pk")
    ):
        ended.add_metric((verb, result), number)
    yield ended


def _clusters(now: datetime) -> Iterator[Metric]:
    heard = Backend.objects.filter(offline=False)
    yield _counted(
        "cluster_heard_seconds",
        "For how long a cluster that is not offline has told nothing of its jobs, not "
        "even that there is nothing to tell.",
        "cluster",
        (
            (name, _seconds(now, when))
            for name, when in heard.values_list("clustername", "heard")
            if when
        ),
    )
    known = Backend.objects.values_list("clustername", F("offline"))
    yield _counted(
        "cluster_offline",
        "Whether an administrator has said that a cluster is off (1).",
        "cluster",
        ((name, float(offline)) for name, offline in known),
    )


def _workers(now: datetime) -> Iterator[Metric]:
    found = Heartbeat.objects.aggregate(number=Count("pk"), seen=Max("seen"))
    yield _gauge("workers", "Workers that were seen lately.", found["number"])
    if found["seen"]:
        yield _gauge(
            "worker_seen_seconds",
            "For how long no worker was seen.",
            _seconds(now, found["seen"]),
        )


def _seconds(now: datetime, since: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)


def _drifts(now: datetime) -> int:
    return drifts_at(int(now.timestamp() // _EVERY))


@lru_cache(maxsize=1)
def drifts_at(_turn: int) -> int:
    """Return how many rows of quota are wrong; it is kept until the next turn."""
    return sum(1 for _ in quota.drifts())
