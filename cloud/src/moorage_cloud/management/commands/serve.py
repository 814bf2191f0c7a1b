# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage serve``: the API, by gunicorn."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management.command import CloudCommand

APPLICATION = "moorage_cloud.web:application()"
GRACE = 30
"""Seconds that requests have to end when the service is told to."""


class Command(CloudCommand):
    """Become gunicorn, until it is told to end."""

    help = (
        "Serve identity, block storage and compute over HTTP, until it is told to end. "
        "TLS is for what stands in front. Settings of gunicorn's own are read from the "
        "variable GUNICORN_CMD_ARGS."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to serve, and with how much."""
        parser.add_argument(
            "--bind",
            default="127.0.0.1:8776",
            help="address and port, or unix:PATH; default %(default)s",
        )
        parser.add_argument(
            "--processes", type=int, default=2, help="default %(default)s"
        )
        parser.add_argument(
            "--threads",
            type=int,
            default=4,
            help="requests at once of a process, each with a connection to the "
            "database; default %(default)s",
        )
        parser.add_argument(
            "--timeout",
            type=int,
            default=60,
            help="seconds after which a process that does not move is replaced; "
            "default %(default)s",
        )

    def go(self, options: Mapping[str, Any]) -> None:
        """Serve."""
        argv = [sys.executable, "-m", "gunicorn", *words(options)]
        os.execv(sys.executable, argv)  # noqa: S606 - the service is gunicorn from here on


def words(options: Mapping[str, Any]) -> list[str]:
    """Return what gunicorn is told."""
    told = {name: options[name] for name in ("bind", "threads", "timeout")}
    told |= {"workers": options["processes"], "graceful-timeout": GRACE}
    given = [f"--{name}={value}" for name, value in told.items()]
    return ["--no-control-socket", *given, APPLICATION]
