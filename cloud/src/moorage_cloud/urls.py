# SPDX-License-Identifier: BSD-2-Clause
"""Where requests go."""

from .api.urls import urlpatterns

__all__ = ["urlpatterns"]
