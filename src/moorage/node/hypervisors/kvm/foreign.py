# SPDX-License-Identifier: BSD-2-Clause
"""Guests whose processes Ganeti started: found by its pid files, told by the kernel.

Nothing that such a process says is needed to know that it is there: what is looked at
is its pid file, its command line and what it has open. So none is started a second time
because its monitor is silent.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from moorage.node.machine.proc import START, living

_PARENT, _KERNEL = 1, "2"
"""Which word of a process says whose child it is; the kernel's own are this one's."""
_ACCESS = os.O_WRONLY | os.O_RDWR
_AFAR = re.compile(r"\bfile=(rbd|gluster)(?:\+\w+)?:")
"""In what Ganeti says of a drive whose data QEMU fetches itself."""


class Found(Struct, frozen=True, kw_only=True):
    """A process of Ganeti's that lives.

    Attributes
    ----------
    name
        Of its instance.
    uuid
        Likewise; empty if its command line says none.
    born
        When its process was started, as the kernel counts: with `pid` it is that one.
    monitor, console
        Its sockets; they need not be there.
    afar
        The kinds of storage that it reaches by itself, as its command line says.
    """

    name: str
    uuid: str
    pid: int
    born: str
    monitor: Path
    console: Path
    afar: tuple[str, ...] = ()


class Open(NamedTuple):
    """Something that a process has open, and that may be a disk.

    Attributes
    ----------
    which
        What tells it apart: a block device's number, or a file's device and inode.
    path
        As the kernel names it.
    """

    which: tuple[int, int]
    path: str


def everyone(directory: Path) -> Iterator[Found]:
    """Yield the guests below a directory of Ganeti's whose processes live."""
    try:
        names = sorted(path.name for path in (directory / "pid").iterdir())
    except OSError:
        return
    for name in names:
        found = _named(directory, name)
        if found:
            yield found


def _named(directory: Path, name: str) -> Found | None:
    """Return a guest, if the process of its pid file may be the one that wrote it.

    One that is about to end has no command line any more, and its disks still open.
    """
    file = directory / "pid" / name
    try:
        pid = int(file.read_text(errors="replace"))
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    line = [os.fsdecode(word) for word in words]
    seen = living(pid)
    mute = bool(seen) and not any(line) and seen[_PARENT] != _KERNEL
    noted = _after("-pidfile", line)
    if not seen or (Path(noted).resolve() != file.resolve() and not mute):
        return None
    control = directory / "ctrl"
    return Found(
        name=name,
        uuid=_uuid(_after("-uuid", line)),
        pid=pid,
        born=seen[START],
        monitor=control / f"{name}.qmp",
        console=control / f"{name}.serial",
        afar=tuple(sorted({one for word in line for one in _AFAR.findall(word)})),
    )


def lives(found: Found) -> bool:
    """Whether the process is there still: QEMU removes its pid file before it ends."""
    return living(found.pid)[START : START + 1] == [found.born]


def _after(option: str, line: list[str]) -> str:
    """Return the word after an option; empty if it is not there."""
    return line[line.index(option) + 1] if option in line[:-1] else ""


def _uuid(word: str) -> str:
    """Return a uuid as we write it; empty for any other word: it becomes a path."""
    try:
        return str(UUID(word))
    except ValueError:
        return ""


def opened(found: Found) -> list[Open]:
    """Return what a process has open that may be its disks.

    These are all block devices, and the files that it may write to: but for its pid
    file and those without a name, which are memory.

    Raises
    ------
    OSError
        If the process has ended, or is not ours to look at.
    """
    pid_file = found.monitor.parent.parent / "pid" / found.name
    kept = {_which(pid_file.stat())} if pid_file.exists() else set()
    told = {}
    for at in Path(f"/proc/{found.pid}/fd").iterdir():
        one = _opened(at)
        if one and one.which not in kept:
            told[one.which] = one
    return sorted(told.values(), key=lambda one: one.path)


def _opened(at: Path) -> Open | None:
    try:
        seen, path = at.stat(), str(at.readlink())
        writes = _flags(at) & _ACCESS
    except FileNotFoundError:  # it was closed meanwhile
        return None
    is_file = stat.S_ISREG(seen.st_mode) and seen.st_nlink and writes
    if is_file or stat.S_ISBLK(seen.st_mode):
        return Open(_which(seen), path)
    return None


def _flags(at: Path) -> int:
    """Return how a descriptor was opened."""
    lines = (at.parents[1] / "fdinfo" / at.name).read_text().splitlines()
    words = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(words["flags"], 8)


def at_path(path: str) -> Open:
    """Return what is at a path: what a process has open can be compared with it.

    Raises
    ------
    OSError
        If there is nothing.
    """
    return Open(_which(Path(path).stat()), path)


def has_open(found: Found, path: str) -> bool:
    """Whether a process has what is at a path open, to write or to read.

    Raises
    ------
    OSError
        As :func:`opened`; or if there is nothing at the path.
    """
    wanted = at_path(path).which
    for at in Path(f"/proc/{found.pid}/fd").iterdir():
        try:
            if _which(at.stat()) == wanted:
                return True
        except FileNotFoundError:
            continue
    return False


def _which(seen: os.stat_result) -> tuple[int, int]:
    if stat.S_ISBLK(seen.st_mode):
        return -1, seen.st_rdev
    return seen.st_dev, seen.st_ino
