# SPDX-License-Identifier: BSD-2-Clause
"""The programs that run for verbs: they must not outlive their agent unnoticed.

Each notes itself, between fork and exec, with what ``/proc`` says of it: so there is no
moment in which a program runs and nobody could find it. An agent that starts ends the
programs that an earlier one left, with their process groups, and lets no verb touch
their objects before they are gone. A program that left its process group (a storage
daemon) is not ended: it may serve a volume.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from msgspec import DecodeError, json

from . import durable
from .turns import CURRENT, Step, Work

_LOG = logging.getLogger(__name__)
_LOOK = 0.05
"""Seconds between two looks at a program that was ended."""
_START = 19
"""Where the start time is among what follows the name in ``/proc/PID/stat``."""
_BYTES = 4096


class Running:
    """A program by its process id and start time, which together never come twice."""

    def __init__(self, stat: str) -> None:
        self.pid = int(stat.split(maxsplit=1)[0])
        self._start = _after_name(stat)[_START]

    def alive(self) -> bool:
        """Whether it runs."""
        stat = _stat(self.pid)
        return bool(stat) and stat[0] not in "ZX" and stat[_START] == self._start

    def kill(self) -> None:
        """End it, with all of its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class Scripts:
    """The programs of a node, by the objects that they work on.

    Parameters
    ----------
    directory
        Where they are noted. What is there already was left by an earlier agent, and
        is ended.
    """

    def __init__(self, directory: Path) -> None:
        durable.make(directory)
        self._directory = directory
        self._numbers = count(1)
        self._ours: dict[Path, Work] = {}
        self._left = list(self._found())
        for objects, running, _ in self._left:
            _LOG.warning("ending process %s, left at work on %s", running.pid, objects)
            running.kill()

    @contextmanager
    def noted(self) -> Iterator[Callable[[], None]]:
        """Yield what a new process calls to note itself; forget it in the end."""
        path = self._directory / f"{os.getpid()}-{next(self._numbers)}"
        work = CURRENT.get()
        path.write_bytes(json.encode(sorted(work.objects)) + b"\n")
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._ours[path] = work

        def note() -> None:  # between fork and exec: nothing but system calls
            own = os.open("/proc/self/stat", os.O_RDONLY)
            os.write(handle, os.read(own, _BYTES))

        try:
            yield note
        finally:
            os.close(handle)
            del self._ours[path]
            path.unlink(missing_ok=True)

    async def settle(self, objects: Collection[str]) -> None:
        """Wait until nothing is left of an earlier agent's programs on the objects."""
        for entry in list(self._left):
            names, running, path = entry
            if not names & set(objects):
                continue
            while _group_alive(running.pid):  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(_LOOK)
            path.unlink(missing_ok=True)
            if entry in self._left:
                self._left.remove(entry)

    def kill(self, objects: Collection[str], before: Step) -> int:
        """End the programs on the objects that steps `before` this one started."""
        found = [
            path
            for path, work in self._ours.items()
            if work.objects & set(objects) and work.step < before
        ]
        ended = [running for path in found if (running := _read(path)[1])]
        for running in ended:
            running.kill()
        return len(ended)

    def _found(self) -> Iterator[tuple[frozenset[str], Running, Path]]:
        for path in sorted(self._directory.iterdir()):
            objects, running = _read(path)
            if running and running.alive():
                yield objects, running, path
            else:
                path.unlink()


def _read(path: Path) -> tuple[frozenset[str], Running | None]:
    """Return what a program works on, and the program if it got so far as to begin."""
    first, _, stat = path.read_text(errors="replace").partition("\n")
    try:
        objects = frozenset(json.decode(first, type=list[str]))
        return objects, Running(stat) if stat else None
    except (DecodeError, ValueError, IndexError):
        return frozenset(), None


def _stat(pid: int | str) -> list[str]:
    """Return state, parent, group … of a process; nothing if there is none."""
    try:
        return _after_name(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except OSError:
        return []


def _after_name(stat: str) -> list[str]:
    """Return what follows the name, which may hold anything, in a line of ``stat``."""
    return stat.rpartition(")")[2].split()


def _group_alive(group: int) -> bool:
    stats = (_stat(path.name) for path in Path("/proc").glob("[0-9]*"))
    return any(s and s[0] not in "ZX" and s[2] == str(group) for s in stats)
