# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel says of a process."""

from pathlib import Path

START = 19
"""Where the time of its start is, among what follows its name."""
_THREADS = 17
"""Likewise, how many threads it has."""


def descriptor(number: int) -> str:
    """Return the path by which a process that has a descriptor opens it anew."""
    return f"/proc/self/fd/{number}"


def living(pid: int | str) -> list[str]:
    """Return state, parent, group … of a process; nothing if none of that id lives.

    One that has ended, and waits to be buried, does not. One whose first thread has
    ended does, as long as another one may write to its files.
    """
    try:
        words = after_name(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except OSError:
        return []
    return [] if words[0] in "ZX" and int(words[_THREADS]) <= 1 else words


def after_name(stat: str) -> list[str]:
    """Return what follows the name, which may hold anything, in a line of ``stat``."""
    return stat.rpartition(")")[2].split()
