# SPDX-License-Identifier: BSD-2-Clause
"""Commands that wait for what a worker carries out."""

import time
from argparse import ArgumentParser

from django.core.management.base import CommandError

from moorage_cloud.models import Operation, Server, Snapshot, Volume

from .command import CloudCommand

_PAUSE = 0.2
"""Seconds between two looks."""


def add_argument(parser: ArgumentParser) -> None:
    """Take whether to wait."""
    parser.add_argument("--wait", action="store_true", help="until it is done")


def wait(command: CloudCommand, thing: Volume | Snapshot | Server) -> None:
    """Wait for the newest verb on something, and tell how it ended.

    Raises
    ------
    CommandError
        If it failed.
    """
    if isinstance(thing, Snapshot):
        known = Operation.objects.filter(snapshot=thing)
    elif isinstance(thing, Volume):
        known = Operation.objects.filter(volume=thing, snapshot=None)
    else:
        known = Operation.objects.filter(server=thing, volume=None, snapshot=None)
    operation = known.order_by("-pk").first()
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
