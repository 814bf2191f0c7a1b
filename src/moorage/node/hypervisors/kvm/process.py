# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's process: launched in a session of its own, ended by its process id.

It outlives the agent: an agent that dies takes no guest with it.
"""

import asyncio
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from socket import socket, socketpair

from moorage.errors import Failed

from .ending import TRACED
from .guest_dir import NOTE, Home
from .monitor import conversation

_POLL = 0.02
_COMING_UP = 60.0
_FLUSHING = 10.0
_DETACHED = ("setsid", "--fork", "sh", "-c", f'{NOTE} && exec "$@"', "guest")
"""Starts a program that is nobody's child, and notes which process it is."""
_HANDED_ON = ("PATH", "TZ", "CEPH_ARGS", "CEPH_CONF")
"""Of the agent's environment: the rest may hold secrets."""
_PROGRAM = re.compile(r"\A(?:\S*qemu\S*|setpriv): ")


async def launch(
    home: Home, name: str, argv: Sequence[str], keep: Sequence[int]
) -> None:
    """Run QEMU until its monitor answers.

    Parameters
    ----------
    keep
        Descriptors that it inherits.

    Raises
    ------
    Failed
        With QEMU's words, if it did not start.
    """
    life, inherited = socketpair()
    with life:
        with inherited:
            await _detach(home, argv, (*keep, inherited.fileno()))
        if not await _came_up(home, life):
            raise Failed(f"guest {name} did not start: {_last_words(home)}")


def _environment() -> dict[str, str]:
    given = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    return given | {"LC_ALL": "C"}


async def _detach(home: Home, argv: Sequence[str], keep: Sequence[int]) -> None:
    log = home.log("log")
    try:
        parent = await asyncio.create_subprocess_exec(
            *(*_DETACHED, *argv),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=log,
            pass_fds=keep,
            env=_environment(),
            cwd=home.path,
        )
        await parent.wait()
    finally:
        os.close(log)


async def _came_up(home: Home, life: socket) -> bool:
    """Whether QEMU's monitor answers before QEMU ends, or the time is up.

    Parameters
    ----------
    life
        QEMU has the other end: so it tells when QEMU ends.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(life, ended.set)
    ends = asyncio.create_task(ended.wait())
    answer = asyncio.create_task(_answers(home))
    try:
        await asyncio.wait({ends, answer}, return_when=asyncio.FIRST_COMPLETED)
        return answer.done() and not ended.is_set() and answer.result()
    finally:
        loop.remove_reader(life)
        ends.cancel()
        answer.cancel()
        await asyncio.wait({ends, answer})


async def _answers(home: Home) -> bool:
    try:
        async with conversation(home, _COMING_UP):
            return True
    except Failed:
        pid = home.pid()
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return False


def _last_words(home: Home) -> str:
    lines = [line.strip() for line in home.read("log").splitlines()]
    words = [line for line in lines if line and not line.startswith(TRACED)]
    said = [line for line in words if "warning:" not in line]
    return _PROGRAM.sub("", said[-1]) if said else "QEMU gave no reason"


async def settled(home: Home) -> bool:
    """Wait until QEMU has come up, or is gone; return False if it is gone."""
    with suppress(Failed):
        async with conversation(home, _COMING_UP):
            return True
    if home.has_process():
        raise Failed(f"guest {home.spec().name} has been starting for too long")
    return False


async def _pid(home: Home) -> int | None:
    """Return QEMU's process id; None if there is no process."""
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
        pid = await _pid(home)
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if await gone(home, within):
            return
    raise Failed(f"QEMU of guest {home.spec().name} (process {pid}) cannot be killed")
