# SPDX-License-Identifier: BSD-2-Clause
"""What Prometheus reads."""

from moorage.api.rapi.metrics import Metrics
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Route

ROUTES = (
    Route(
        "GET", "/metrics", "Tell metrics, as text for Prometheus", Metrics(), Role.READ
    ),
)
