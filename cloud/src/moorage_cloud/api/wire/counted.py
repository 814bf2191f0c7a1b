# SPDX-License-Identifier: BSD-2-Clause
"""What a process counts of the requests that it answers.

With a directory in the settings, all processes count into files there, and whichever is
asked tells of all of them.
"""

import os

from moorage_cloud.conf import CONF

if CONF.metrics_dir:
    # The library reads it when it is loaded.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = CONF.metrics_dir

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.multiprocess import MultiProcessCollector

disable_created_metrics()  # type: ignore[no-untyped-call]
BOUNDS = (0.01, 0.1, 1.0, 10.0)
"""Seconds."""
COUNTED = CollectorRegistry()
REQUESTS = Counter(
    "moorage_cloud_requests",
    "Requests answered, by method, route and status.",
    ("method", "route", "status"),
    registry=COUNTED,
)
SECONDS = Histogram(
    "moorage_cloud_request_seconds",
    "How long requests took, by method and route.",
    ("method", "route"),
    buckets=BOUNDS,
    registry=COUNTED,
)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def count(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request; words of the client's own make no series."""
    method = method if method in _METHODS else "other"
    REQUESTS.labels(method, route, str(status)).inc()
    SECONDS.labels(method, route).observe(seconds)


def counted() -> CollectorRegistry:
    """Return what was counted: by all processes, or by this one."""
    if not CONF.metrics_dir:
        return COUNTED
    found = CollectorRegistry()
    MultiProcessCollector(found)  # type: ignore[no-untyped-call]
    return found
