# SPDX-License-Identifier: BSD-2-Clause
"""A cgroup a script: what it started is known, and can be ended with it.

A process leaves its process group with one call, and its cgroup only if it is root and
means to. Where there is no cgroup v2 that this process may make groups in, as in most
containers, there are process groups alone.
"""

import logging
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Self

_LOG = logging.getLogger(__name__)
_ROUNDS = 50
"""How often the processes of a group are looked for; they may start others."""


class Cgroup:
    """One group.

    Parameters
    ----------
    path
        Its directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, parent: Path, name: str) -> Self | None:
        """Make a group below this process' own; None where that is not possible."""
        try:
            (parent / name).mkdir()
        except OSError as error:
            _LOG.warning("no cgroup %s can be made: %s", parent / name, error.strerror)
            return None
        return cls(parent / name)

    def door(self) -> int:
        """Return a handle; whoever writes ``0`` to it is in the group."""
        return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def populated(self) -> bool:
        """Whether a process is in it, or in one that a script made below it."""
        try:
            return "populated 1" in (self.path / "cgroup.events").read_text()
        except OSError:
            return False

    def kill(self) -> None:
        """End every process in it."""
        try:
            (self.path / "cgroup.kill").write_text("1")
        except OSError:  # older than Linux 5.14
            for pid in self._pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def let_go(self) -> None:
        """Remove the group; who is left in it belongs to the group around it."""
        around = self.path.parent / "cgroup.procs"
        for _ in range(_ROUNDS):
            for pid in self._pids():
                with suppress(OSError):  # it has ended meanwhile
                    around.write_text(f"{pid}")
            if not self.populated():
                break
        try:
            for path in (*reversed(self._below()), self.path):
                path.rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:
            _LOG.warning("cgroup %s cannot be removed: %s", self.path, error.strerror)

    def _pids(self) -> list[int]:
        found: list[int] = []
        for path in (self.path, *self._below()):
            with suppress(OSError):
                found += map(int, (path / "cgroup.procs").read_text().split())
        return found

    def _below(self) -> list[Path]:
        """Return the groups below it, outer ones first."""
        return sorted(path.parent for path in self.path.rglob("*/cgroup.procs"))


def own(proc: Path = Path("/proc/self")) -> Path | None:
    """Return this process' cgroup, for groups below it; None where none can be made.

    Parameters
    ----------
    proc
        Where the kernel tells it.
    """
    try:
        mounts = (proc / "mountinfo").read_text().splitlines()
        groups = (proc / "cgroup").read_text().splitlines()
    except OSError:
        return None
    tops = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    names = [line[3:] for line in groups if line.startswith("0::")]
    if not tops or not names or "/.." in names[0]:
        return None
    found = Path(tops[0] + names[0])
    return found if os.access(found, os.W_OK) else None
