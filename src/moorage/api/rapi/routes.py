# SPDX-License-Identifier: BSD-2-Clause
"""Every resource."""

from .resources import cluster, groups, instances, jobs, nodes, queries
from .route import Route

ROUTES: tuple[Route, ...] = (
    *cluster.ROUTES,
    *jobs.ROUTES,
    *nodes.ROUTES,
    *groups.GROUPS,
    *groups.NETWORKS,
    *instances.ROUTES,
    *queries.ROUTES,
)
"""Every method of every resource, by what they are about."""
