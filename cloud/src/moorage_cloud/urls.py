# SPDX-License-Identifier: BSD-2-Clause
"""Where requests go."""

from django.urls import include, path

from .api import urls as api
from .conf import CONF

pages = [path("", include("moorage_cloud.pages.urls"))] if CONF.admin_at else []
urlpatterns = [*api.urlpatterns, *pages]
