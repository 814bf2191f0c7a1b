# SPDX-License-Identifier: BSD-2-Clause
"""Which service answers where."""

from django.urls import path, re_path

from .compute.service import COMPUTE, COMPUTE_VERSIONS
from .identity.service import IDENTITY, IDENTITY_VERSIONS
from .image.service import IMAGE, IMAGE_VERSIONS
from .operator import health, metrics
from .volume.service import VOLUME, VOLUME_VERSIONS
from .wire import openapi

SERVICES = (
    IDENTITY,
    VOLUME,
    COMPUTE,
    IMAGE,
    # Shorter ones last: they would have the others' paths.
    IDENTITY_VERSIONS,
    VOLUME_VERSIONS,
    COMPUTE_VERSIONS,
    IMAGE_VERSIONS,
)
urlpatterns = [
    path("healthcheck", health.healthcheck),
    path("metrics", metrics.metrics),
    *(
        path(f"{service.root}/openapi.json", openapi.show, {"service": service})
        for service in SERVICES
    ),
    *(
        # Any character; a flag within it would be one that Django cannot reverse.
        re_path(rf"^{service.root}(?:/(?P<path>[\s\S]*))?\Z", service.serve)
        for service in SERVICES
    ),
]
