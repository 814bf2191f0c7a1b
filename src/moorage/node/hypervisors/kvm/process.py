# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's process: launched as a daemon of its own, ended by its process id.

It outlives the agent: an agent that dies takes no guest with it.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from moorage.errors import Failed

from .home import Home

_POLL = 0.02
_COMING_UP = 60.0
_FLUSHING = 10.0


async def launch(
    home: Home, name: str, argv: Sequence[str], keep: Sequence[int]
) -> None:
    """Run QEMU until it is a daemon with an open monitor.

    Parameters
    ----------
    keep
        Descriptors that it inherits.

    Raises
    ------
    Failed
        With QEMU's words, if it did not start.
    """
    with home.file("errors").open("wb") as errors:
        try:
            child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                pass_fds=keep,
                start_new_session=True,
                cwd=home.path,
            )
        except FileNotFoundError:
            raise Failed(
                f"{argv[0]} is missing", hint="apt-get install qemu-system-x86"
            ) from None
        code = await _ended(child)
    if code:
        raise Failed(f"guest {name} did not start: {_last_words(home, argv[0])}")


async def _ended(child: asyncio.subprocess.Process) -> int:
    try:
        return await asyncio.wait_for(child.wait(), _COMING_UP)
    except TimeoutError:
        child.kill()  # the daemon that it may have made goes on, and is seen as such
        return await child.wait()


def _last_words(home: Home, program: str) -> str:
    text = home.read("errors") + home.read("log")
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and "warning:" not in line]
    return said[-1].removeprefix(f"{program}: ") if said else "QEMU gave no reason"


async def settled(home: Home) -> int | None:
    """Return QEMU's process id, once it has come up; None if there is no process."""
    clock = asyncio.get_running_loop().time
    end = clock() + _COMING_UP
    while home.has_process():
        if pid := home.pid():
            return pid
        if clock() > end:
            raise Failed(f"guest {home.spec().name} has been starting for too long")
        await asyncio.sleep(_POLL)
    return None


async def gone(home: Home, within: float) -> bool:
    """Whether the guest's process ended within so many seconds."""
    clock = asyncio.get_running_loop().time
    end = clock() + within
    while home.has_process():
        if clock() > end:
            return False
        await asyncio.sleep(_POLL)
    return True


async def end(home: Home) -> None:
    """End the process: let QEMU close its drives, or kill it if it does not."""
    for number, within in ((signal.SIGTERM, _FLUSHING), (signal.SIGKILL, _COMING_UP)):
        pid = await settled(home)
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if await gone(home, within):
            return
    raise Failed(f"QEMU of guest {home.spec().name} (process {pid}) cannot be killed")
