# SPDX-License-Identifier: BSD-2-Clause
"""Every resource."""

from functools import cache
from typing import Any

from .looking import get
from .openapi import document
from .resources import (
    audit,
    capacity,
    cluster,
    disks,
    events,
    filters,
    groups,
    instances,
    jobs,
    metrics,
    nodes,
    queries,
    storage,
)
from .route import Asked, Route


@cache
def described() -> dict[str, Any]:
    """Return the OpenAPI document of all resources."""
    return document(ROUTES)


async def _described(_asked: Asked) -> dict[str, Any]:
    return described()


ROUTES: tuple[Route, ...] = (
    *cluster.ROUTES,
    get(
        "/2/openapi.json",
        "Describe all resources, as OpenAPI 3.1 does",
        _described,
        answer=dict[str, Any],
    ),
    *jobs.ROUTES,
    *nodes.ROUTES,
    *groups.GROUPS,
    *groups.NETWORKS,
    *instances.ROUTES,
    *disks.ROUTES,
    *storage.ROUTES,
    *capacity.ROUTES,
    *queries.ROUTES,
    *events.ROUTES,
    *audit.ROUTES,
    *metrics.ROUTES,
    *filters.ROUTES,
)
"""Every method of every resource, by what they are about."""
