# SPDX-License-Identifier: BSD-2-Clause
"""Where requests go."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
