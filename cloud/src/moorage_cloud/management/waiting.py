# SPDX-License-Identifier: BSD-2-Clause
"""Commands that wait for what a worker carries out."""

import time
from argparse import ArgumentParser

from django.core.management.base import CommandError

from moorage_cloud.models import Volume

from .command import CloudCommand

_PAUSE = 0.2
"""Seconds between two looks."""


def add_argument(parser: ArgumentParser) -> None:
    """Take whether to wait."""
    parser.add_argument("--wait", action="store_true", help="until it is done")


def wait(command: CloudCommand, volume: Volume) -> None:
    """Wait for the newest verb on a volume, and tell how it ended.

    Raises
    ------
    CommandError
        If it failed.
    """
    operation = volume.operations.filter(snapshot=None).order_by("-pk").first()
    if operation is None:
        return
    told = False
    while operation.ended is None:
        if operation.job is not None and not told:
            command.tell(f"Issued job '{operation.job}'. Waiting to complete...")
            told = True
        time.sleep(_PAUSE)
        operation.refresh_from_db()
    if operation.result == "failed":
        raise CommandError(f"Job failed! Error: {operation.why}")
    command.tell("Job finished successfully.")
