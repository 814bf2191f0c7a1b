# SPDX-License-Identifier: BSD-2-Clause
"""The service as an application of Django's."""

from django.apps import AppConfig


class Cloud(AppConfig):
    """Volumes over several clusters."""

    name = "moorage_cloud"
    label = "cloud"
    verbose_name = "Volumes over several clusters"
