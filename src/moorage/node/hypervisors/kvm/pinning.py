# SPDX-License-Identifier: BSD-2-Clause
"""Which of the node's processors a guest's threads run on: its ``cpu_mask``."""

import logging
import os
from pathlib import Path

from moorage.errors import Failed
from moorage.model import cpumask
from moorage.model.hvparams import Parameters

from . import shapes
from .guest_dir import Home
from .monitor import conversation

_ONLINE = Path("/sys/devices/system/cpu/online")
_LOG = logging.getLogger(__name__)


async def pin(home: Home, given: Parameters) -> None:
    """Bind a guest's threads, as its mask says.

    One entry is for all of QEMU's threads, those that it starts later among them. With
    more, each is for a virtual processor. A guest may have come to a node that lacks
    some processors: it has those of its mask that there are, or else all.

    Raises
    ------
    Failed
        If QEMU names threads that are not its own.
    """
    sets = cpumask.parsed(given.cpu_mask).sets
    pid = home.pid()
    if not any(sets) or pid is None:
        return
    threads = {int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()}
    if len(sets) == 1:
        bound = dict.fromkeys(threads, sets[0])
    else:
        async with conversation(home) as monitor:
            told = await monitor.read(shapes.Processors, "query-cpus-fast")
        bound = {
            one.thread_id: sets[one.cpu_index]
            for one in told
            if one.cpu_index < len(sets)
        }
        if not bound.keys() <= threads:
            raise Failed(f"QEMU of guest {home.spec().name} names threads of others")
    for thread, ranges in bound.items():
        bind(thread, ranges, home.spec().name)


def bind(thread: int, ranges: tuple[tuple[int, int], ...], name: str) -> None:
    """Bind a thread to the processors of some ranges that the node has.

    Those of all ranges may be fewer than the agent itself runs on, or others.
    """
    there = online()
    wanted = {n for n in there if any(low <= n <= high for low, high in ranges)}
    if ranges and not wanted:
        _LOG.warning("guest %s: this node has no processor of its cpu_mask", name)
    if not wanted:
        return
    try:
        os.sched_setaffinity(thread, wanted)
    except ProcessLookupError:
        pass  # it has ended since it was listed
    except OSError as error:  # its control group has none of them
        _LOG.warning("guest %s: cpu_mask: %s", name, error.strerror)


def online() -> frozenset[int]:
    """Return the processors that the node has, and that are on."""
    (ranges,) = cpumask.parsed(_ONLINE.read_text().strip()).sets
    return frozenset(n for low, high in ranges for n in range(low, high + 1))
