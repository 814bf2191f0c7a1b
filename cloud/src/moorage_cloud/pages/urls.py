# SPDX-License-Identifier: BSD-2-Clause
"""Where the pages are."""

from django.urls import path
from django.views.generic import RedirectView

from . import clusters as _clusters
from . import people as _people
from . import volumes as _volumes
from .site import site

__all__ = ["_clusters", "_people", "_volumes", "urlpatterns"]

urlpatterns = [
    path("admin", RedirectView.as_view(url="/admin/")),
    path("admin/", site.urls),
]
