# SPDX-License-Identifier: BSD-2-Clause
"""How far a request walks through the code: modules entered, and calls between them.

A command is typed at a simulated cluster of three nodes, in one process, and every
call is noted until a provider's script makes or attaches the volume. A figure is a
property of the code, not of the machine: it is the same each time, but for the turns
that an event loop happens to take.

rooms
    Modules that were entered; what is only loaded on the way is not.
moves
    Calls from a function of one module into one of another, a generator that is taken
    up again included.
parsed
    How often the words of a disk's request were read (`disk_words._specified`).
looked up
    How often a template was looked up by its name (`template_named`).
"""

import argparse
import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from desk import desk_at
from moorage.testing.cluster import ClusterBuilder, SimCluster

PREFIX = "moorage."
WALKS = (
    ("disk add", "gnt-disk add -t ext -p san -s 1G new1"),
    ("attach", "gnt-disk attach data1 web1"),
    ("instance add", "gnt-instance add -t ext --disk 0:size=1G,provider=san web2"),
)
SCRIPTS, THERE = "moorage.testing.storage", ("_created", "_use")
"""Where a simulated provider makes volumes, and attaches them."""
READ, NAMED = "_specified", "template_named"


class Walk:
    """What was noted of one request."""

    def __init__(self) -> None:
        self.goes_on = False
        self.rooms: Counter[str] = Counter()
        self.moves: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[str] = Counter()

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:  # noqa: ANN401
        """Note a call of a function of the product."""
        if event != "call" or not self.goes_on:
            return
        room = frame.f_globals.get("__name__", "")
        if _is_loaded(frame):
            return
        if room == SCRIPTS and frame.f_code.co_name in THERE:
            self.goes_on = False
        if not room.startswith(PREFIX) or room.startswith("moorage.testing"):
            return
        self.rooms[room] += 1
        self.calls[frame.f_code.co_name] += 1
        above = frame.f_back
        while above and not above.f_globals.get("__name__", "").startswith(PREFIX):
            above = above.f_back
        former = above.f_globals["__name__"] if above else ""
        if former and former != room:
            self.moves[former, room] += 1


def _is_loaded(frame: FrameType | None) -> bool:
    """Whether this runs because a module of ours is loaded, here or further out."""
    while frame:
        named = frame.f_globals.get("__name__", "").startswith(PREFIX)
        if named and frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


async def at_once(decide: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Decide without a thread."""
    return decide()


async def walked(line: str) -> Walk:
    """Type a line at a cluster of its own; return how far it went."""
    walk = Walk()
    # Before any thread is there: each of them is to note what it calls.
    threading.setprofile(walk.note)
    sys.setprofile(walk.note)

    async def make(directory: Path) -> SimCluster:
        builder = ClusterBuilder().instance("web1").disk("data1")
        cluster = SimCluster(directory)
        cluster.aside = at_once  # its own waits, and takes turns that nobody asked for
        await cluster.make(builder)
        volume = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes["vol-data1"] = volume
        return cluster

    try:
        async with desk_at(make) as desk:
            walk.goes_on = True
            await desk.types(line)
            walk.goes_on = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return walk


def main() -> int:
    """Print a table; with -v what is walked most often."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-v", "--verbose", type=int, default=0, metavar="MOST")
    asked = parser.parse_args()
    print(f"{'':14}{'rooms':>8}{'moves':>8}{'parsed':>8}{'looked up':>11}")
    for name, line in WALKS:
        walk = asyncio.run(walked(line))
        counts = walk.calls[READ], walk.calls[NAMED]
        print(f"{name:14}{len(walk.rooms):8,}{walk.moves.total():8,}", end="")
        print(f"{counts[0]:8,}{counts[1]:11,}", flush=True)
        for pair, number in walk.moves.most_common(asked.verbose):
            print(f"{number:8,}  {pair[0]} -> {pair[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
