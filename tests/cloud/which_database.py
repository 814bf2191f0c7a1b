# SPDX-License-Identifier: BSD-2-Clause
"""Which database this process uses."""

from django.db import connection, connections

from moorage_cloud import settings


def go_to(where: str) -> None:
    """Let this process use another database, named as in the settings of a cloud."""
    connection.close()
    told = connections.configure_settings({"default": settings.database(where)})
    connections.settings["default"] = told["default"]
    del connections["default"]
