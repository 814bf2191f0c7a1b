# SPDX-License-Identifier: BSD-2-Clause
"""The programs that run for verbs: they must not outlive their agent unnoticed.

Each notes itself, between fork and exec, with what ``/proc`` says of it: so there is no
moment in which a program runs and nobody could find it. Each runs in a cgroup of its
own where there are such, and what it started ends with it; elsewhere, only its process
group does. An agent that starts ends the programs that an earlier one left, and lets no
verb touch their objects before they are gone. What a program leaves behind when it ends
by itself (a storage daemon) goes on: it may serve a volume.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from msgspec import DecodeError, Struct, json

from moorage import durable

from .cgroup import Cgroup
from .proc import START, after_name, living
from .turns import CURRENT, Step, Work

_LOG = logging.getLogger(__name__)
_LOOK = 0.05
"""Seconds between two looks at a program that was ended."""
_PATIENCE = 5.0
"""Seconds that one which was ended may take to be gone; one that hangs, hangs."""
_BYTES = 4096


class Running:
    """A program by its process id and start time, which together never come twice."""

    def __init__(self, stat: str) -> None:
        self.pid = int(stat.split(maxsplit=1)[0])
        self._start = after_name(stat)[START]

    def alive(self) -> bool:
        """Whether it runs."""
        found = living(self.pid)
        return bool(found) and found[START] == self._start

    def kill(self) -> None:
        """End it, with all of its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class _Head(Struct, frozen=True, omit_defaults=True):
    """What is known of a program before it runs: its objects, and its cgroup."""

    objects: list[str]
    group: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """A program as it is noted.

    Attributes
    ----------
    running
        None if it did not get so far as to begin.
    """

    path: Path
    objects: frozenset[str] = frozenset()
    group: Cgroup | None = None
    running: Running | None = None

    @classmethod
    def read(cls, path: Path) -> "Noted":
        """Return what a note says; nothing of one that is damaged."""
        first, _, stat = path.read_text(errors="replace").partition("\n")
        try:
            head = json.decode(first, type=_Head | list[str])
            head = _Head(head) if isinstance(head, list) else head
            group = Cgroup(Path(head.group)) if head.group else None
            running = Running(stat) if stat else None
            return cls(path, frozenset(head.objects), group, running)
        except (DecodeError, ValueError, IndexError):
            return cls(path)

    def kill(self) -> None:
        """End it, and what it started."""
        if self.running:
            self.running.kill()
        if self.group:
            self.group.kill()

    def alive(self) -> bool:
        """Whether it runs, or something of it that ends with it."""
        group = self.running and _group_alive(self.running.pid)
        return bool(group) or bool(self.group and self.group.populated())

    def forget(self) -> None:
        """Remove the note, and its cgroup."""
        if self.group:
            self.group.let_go()
        self.path.unlink(missing_ok=True)


class Note:
    """A note that is being made; :meth:`write` is for the new process itself."""

    def __init__(
        self, path: Path, objects: Collection[str], group: Cgroup | None
    ) -> None:
        head = _Head(sorted(objects), str(group.path) if group else "")
        path.write_bytes(json.encode(head) + b"\n")
        self.path = path
        self._group = group
        self._door = group.door() if group else None
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND)

    def write(self) -> None:
        """Enter the group, and note oneself: between fork and exec."""
        if self._door is not None:  # nothing but system calls
            with suppress(OSError):  # it runs without, rather than not at all
                os.write(self._door, b"0")
        own = os.open("/proc/self/stat", os.O_RDONLY)
        os.write(self._handle, os.read(own, _BYTES))

    async def end(self) -> None:
        """End the program and what it started, and wait a while until it is gone."""
        noted = Noted.read(self.path)
        noted.kill()
        for _ in range(round(_PATIENCE / _LOOK)):
            if not noted.alive():
                return
            await asyncio.sleep(_LOOK)

    def close(self) -> None:
        """Forget the program: it has ended."""
        for handle in (self._handle, self._door):
            if handle is not None:
                os.close(handle)
        Noted(self.path, group=self._group).forget()


class Scripts:
    """The programs of a node, by the objects that they work on.

    Parameters
    ----------
    directory
        Where they are noted. What is there already was left by an earlier agent, and
        is ended.
    groups
        Where a cgroup a program is made; None for nowhere.
    """

    def __init__(self, directory: Path, groups: Path | None = None) -> None:
        durable.make(directory)
        self._directory = directory
        self._groups = groups
        self._numbers = count(1)
        self._ours: dict[Path, Work] = {}
        self._left = list(self._found())
        for noted in self._left:
            _LOG.warning("ending a script that was left at work on %s", noted.objects)
            noted.kill()

    @contextmanager
    def noted(self) -> Iterator[Note]:
        """Yield a note for a new process; forget it in the end."""
        name = f"{os.getpid()}-{next(self._numbers)}"
        group = None
        if self._groups:
            group = Cgroup.make(self._groups, f"moorage-{name}")
        work = CURRENT.get()
        path = self._directory / name
        try:
            note = Note(path, work.objects, group)
        except OSError:  # of a full disk, say
            Noted(path, group=group).forget()
            raise
        self._ours[note.path] = work
        try:
            yield note
        finally:
            del self._ours[note.path]
            note.close()

    async def settle(self, objects: Collection[str]) -> None:
        """Wait until nothing is left of an earlier agent's programs on the objects."""
        for noted in list(self._left):
            if not noted.objects & set(objects):
                continue
            while noted.alive():  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(_LOOK)
            noted.forget()
            if noted in self._left:
                self._left.remove(noted)

    def kill(self, objects: Collection[str], before: Step) -> int:
        """End the programs on the objects that steps `before` this one started."""
        found = [
            Noted.read(path)
            for path, work in self._ours.items()
            if work.objects & set(objects) and work.step.older(before)
        ]
        ended = [noted for noted in found if noted.running]
        for noted in ended:
            noted.kill()
        return len(ended)

    def _found(self) -> Iterator[Noted]:
        """Yield those that still run; what a dead one left behind goes on."""
        for path in sorted(self._directory.iterdir()):
            noted = Noted.read(path)
            if noted.running and noted.running.alive():
                yield noted
            else:
                noted.forget()


def _group_alive(group: int) -> bool:
    found = (living(path.name) for path in Path("/proc").glob("[0-9]*"))
    return any(one and one[2] == str(group) for one in found)
