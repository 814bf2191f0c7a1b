# SPDX-License-Identifier: BSD-2-Clause
"""Wrong clocks: a node's wall clock, which jumps, and the monotonic one of a process.

The wall clock is what a library tells who runs with it (``wall_clock.c``), and no sleep
is touched: libfaketime 0.9.10, told to leave the monotonic clock alone, breaks waits by
that, and Python's threads starve. The monotonic clock counts from a machine's start, in
a time namespace of its own from another start.

What is written in Go, as etcd is, asks the kernel, and has no other wall clock.
"""

import struct
import subprocess
import time
from pathlib import Path
from random import Random

_HOUR = 3600
_MOST = 11
"""Hours that a clock is wrong by, at most: certificates begin a day before they are
made, and two nodes' clocks may be wrong in two ways."""


def library(path: Path) -> Path:
    """Make the library at a path, and return that."""
    source = Path(__file__).with_name("wall_clock.c")
    words = ["-std=c11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", path]
    subprocess.run(["gcc", *words, source], check=True)
    return path


class Wall:
    """A node's wall clock: it is right at first, and set while all goes on.

    Parameters
    ----------
    file
        Holds the seconds by which it is wrong.
    preload
        The library.
    """

    def __init__(self, file: Path, preload: Path) -> None:
        self._file = file
        self.environ = {"LD_PRELOAD": str(preload), "MOORAGE_WRONG_CLOCK": str(file)}
        """The variables of whoever has this clock."""
        file.write_bytes(bytes(8))

    def set(self, seconds: int) -> None:
        """Let it be wrong by some seconds: ahead, or back if they are negative."""
        with self._file.open("r+b") as file:  # it is mapped: it has to stay the same
            file.write(struct.pack("q", seconds))


def ahead(dice: Random) -> int:
    """Return by how many seconds a clock is ahead: an hour at least."""
    return dice.randrange(_HOUR, _MOST * _HOUR)


def other_start(dice: Random) -> list[str]:
    """Return the words before a command whose monotonic clock is another one.

    It is hours ahead, or behind by up to the whole time since the machine started.
    """
    behind = int(min(_MOST * _HOUR, 0.9 * time.monotonic()))
    seconds = dice.choice((ahead(dice), -dice.randrange(1, behind)))
    return ["unshare", "--time", f"--monotonic={seconds}", f"--boottime={seconds}"]
