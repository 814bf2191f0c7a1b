# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage worker``: carry verbs to the clusters, and hear what became of them."""

import signal
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage.record_types import look_at_types
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.work import Doors, Worker, place_of_worker


class Command(CloudCommand):
    """Run until it is told to end."""

    help = "Carry what users asked for to the clusters, until it is told to end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take how many requests may be under way."""
        parser.add_argument(
            "--senders", type=int, default=4, help="requests at once; with SQLite one"
        )

    def go(self, options: Mapping[str, Any]) -> None:
        """Work."""
        with place_of_worker() as alone:
            self._work(1 if alone else options["senders"])

    def _work(self, senders: int) -> None:
        look_at_types()  # before there are threads
        doors = Doors()
        worker = Worker(doors, senders)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.end())
        worker.start()
        self.tell("The worker is at work")
        self.stdout.flush()
        worker.wait()
        worker.stop()
        doors.close()
