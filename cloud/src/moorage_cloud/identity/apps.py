# SPDX-License-Identifier: BSD-2-Clause
"""Who is who, as an application of Django's."""

from django.apps import AppConfig


class Identities(AppConfig):
    """Users, projects and roles."""

    name = "moorage_cloud.identity"
    label = "identity"
    verbose_name = "Users and projects"
