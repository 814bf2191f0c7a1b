# SPDX-License-Identifier: BSD-2-Clause
"""A guest that comes here: when its source was let in, and when it was seen to run.

Both are of this machine's clock alone, which runs on when an agent is started anew, and
they stand in the guest's directory. So the time between them is known whatever dies
meanwhile; it is then longer than it was, and never shorter.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec.structs import replace

from moorage.errors import Failed, MoorageError

from . import shapes
from .guest_dir import Home
from .migration import Talk

_FILE = "arrival"
_POLL = 0.05


class _Arrival(Struct, frozen=True):
    """In seconds of the machine's clock; nobody has seen it run yet while that is 0."""

    let_in: float
    ran: float = 0.0


def begin(home: Home) -> None:
    """Note that the source of a migration was let in."""
    home.write(_FILE, json.encode(_Arrival(time.monotonic())).decode())


async def watch(home: Home, talk: Talk, tell: Callable[[], Awaitable[object]]) -> None:
    """Wait until a guest that is on its way here runs, and then note and tell it.

    One that came standing still, or whose process has ended, is somebody else's care.
    """
    status = "inmigrate"
    while status == "inmigrate" and home.has_process():
        await asyncio.sleep(_POLL)
        with suppress(Failed):
            async with talk() as monitor:
                status = (await monitor.read(shapes.Status, "query-status")).status
    if status == "running":
        with suppress(MoorageError, OSError):  # the master asks for it again
            await tell()


def took(home: Home) -> int | None:
    """Return how long a guest that runs here took to come, in milliseconds, at most.

    That is from when its source was let in until it was seen to run: now, if nobody has
    looked before. None if it did not come, or an earlier version took it in.
    """
    try:
        known = json.decode(home.read(_FILE), type=_Arrival)
    except (DecodeError, ValidationError):
        return None
    if not known.ran:
        known = replace(known, ran=time.monotonic())
        with suppress(OSError):  # no room: it is here all the same
            home.write(_FILE, json.encode(known).decode())
    return math.ceil(1000 * (known.ran - known.let_in))
