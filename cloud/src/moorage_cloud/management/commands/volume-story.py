# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-story``: what became of a volume, over all clusters."""

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import FORMATS, CloudCommand, Row
from moorage_cloud.models import StoryEntry
from moorage_cloud.verbs import story

COLUMNS = (
    *("began", "ended", "what", "result", "server", "cluster", "epoch", "jobs"),
    *("size", "project", "user", "about", "why"),
)


class Command(CloudCommand):
    """Tell a volume's story."""

    help = (
        "Tell what became of a volume, over all clusters: who had it, where, with "
        "which epoch and jobs. Volumes that are gone have theirs, too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one."""
        parser.add_argument("volume_id", help="its ID or uuid")
        parser.add_argument("-o", dest="form", choices=FORMATS, default="pretty")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print it, the first first."""
        told = story(find.volume(options["volume_id"]))
        self.show([_row(one) for one in told], COLUMNS, options["form"])


def _row(one: StoryEntry) -> Row:
    return {
        "began": _moment(one.began),
        "ended": _moment(one.ended) if one.ended else "-",
        "what": one.what,
        "result": one.result,
        "server": one.server or "-",
        "cluster": one.cluster or "-",
        "epoch": "-" if one.epoch is None else one.epoch,
        "jobs": [f"{act}:{number}" for act, number in one.jobs] or "-",
        "size": one.size,
        "project": one.project or "-",
        "user": one.userid or "-",
        "about": one.about or "-",
        "why": one.why,
    }


def _moment(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S}"
