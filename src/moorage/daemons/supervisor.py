# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor: a small process that starts the master again when it dies.

A master that cannot write its store ends, and one may be killed. What it had begun is
for the next one to carry on or take back. What ends as planned (status 0), or refuses
with a sentence (1), is left alone; so is one that let another node lead (3).
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from . import process
from .paths import MasterPlaces

HANDED_OVER = 3
"""Exit status of a master that another node has followed, and whose store is aside: it
is not started again, and nothing failed."""
_SHORT = 60.0
"""Seconds; who lives no longer than this is started again more and more slowly."""
_LONGEST = 30.0
"""Seconds between two starts at most."""


def run(places: MasterPlaces) -> int:
    """Run the master of `places` until it ends for good; return its exit status.

    SIGTERM and SIGINT are passed on and awaited; SIGHUP ends a pause.

    Raises
    ------
    WrongState
        If another supervisor does so already.
    """
    argv = process.command("master", "run", "--dir", str(places.root))
    signal.signal(signal.SIGHUP, lambda *_: None)  # who sees the lock may be in a hurry
    refusal = f"the master in {places.root} is supervised"
    with process.held(places.supervisor, refusal, "moorage master stop"):
        return asyncio.run(_supervised(argv))


async def _supervised(argv: Sequence[str]) -> int:
    stopped, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, hurry.set)
    pause = 0.0
    while True:
        begun = time.monotonic()
        status = await lived(argv, stopped)
        if status in (0, 1) or stopped.is_set():
            return status
        if status == HANDED_OVER:
            return 0
        if time.monotonic() - begun > _SHORT:
            pause = 0.0
        _say(f"the master ended with status {status}; it starts again in {pause:g} s")
        await _first_of(pause, stopped, hurry)
        if stopped.is_set():
            return 0
        hurry.clear()
        pause = min(max(pause * 2, 0.5), _LONGEST)


async def lived(argv: Sequence[str], stopped: asyncio.Event) -> int:
    """Run a program to its end; return its status, a signal as a negative number.

    One that cannot be started now, for want of memory, say, or because it is being
    replaced, has ended with ``EX_OSERR``.
    """
    try:
        child = await asyncio.create_subprocess_exec(*argv)
    except OSError as error:
        _say(f"the master cannot be started: {error}")
        return os.EX_OSERR
    end, stop = asyncio.create_task(child.wait()), asyncio.create_task(stopped.wait())
    await asyncio.wait({end, stop}, return_when=asyncio.FIRST_COMPLETED)
    if not end.done():
        child.terminate()
    stop.cancel()
    return await end


async def _first_of(seconds: float, *events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()


def _say(text: str) -> None:
    """Write a line; where the disk is full, the master still has to be started."""
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"{now} WARNING {text}\n".encode())
