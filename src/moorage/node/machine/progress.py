# SPDX-License-Identifier: BSD-2-Clause
"""How far a program is: what it writes about itself, read with care.

A program is not slowed down by it, and need not know of it: what it writes is a file,
of which the agent now and then reads the end.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

from moorage.node.text import clean
from moorage.protocol import Report
from moorage.storage import Progress

_END = 512
"""Bytes at the end of a file in which the latest word is looked for."""
_LARGEST = 1 << 53
"""No count is higher: JSON readers would round it."""
_UNIT = 16
"""Characters of a unit."""
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)(?:/100)?%")
_COUNT = re.compile(r"(\d{1,16})\s+(\d{1,16})(?:\s+(\S+))?\s*")


class Watch:
    """What a program told last, and whom to tell.

    Parameters
    ----------
    file
        What it writes to.
    report
        Gets done, total, unit and note, whenever they change.
    """

    def __init__(self, told: Progress, file: IO[bytes], report: Report) -> None:
        self.file = file
        self._told = told
        self._report = report
        self._last: tuple[int, int, str] | None = None

    @property
    def env(self) -> Mapping[str, str]:
        """The variable that names the file; every child of the program finds it."""
        path = f"/proc/{os.getpid()}/fd/{self.file.fileno()}"
        return {self._told.variable: path} if self._told.variable else {}

    def look(self) -> None:
        """Report what is new."""
        handle = self.file.fileno()
        begin = max(0, os.fstat(handle).st_size - _END)
        written = os.pread(handle, _END, begin).decode(errors="replace")
        found = latest(written, self._told)
        if found and found != self._last:
            self._last = found
            self._report(*found, self._told.note)


@contextmanager
def watched(
    told: Progress | None, out: IO[bytes], report: Report
) -> Iterator[Watch | None]:
    """Yield the watch over a program; None for one that tells nothing.

    Parameters
    ----------
    out
        What it prints.
    """
    if told is None:
        yield None
    elif not told.variable:
        yield Watch(told, out, report)
    else:
        with TemporaryFile() as file:
            yield Watch(told, file, report)


def without_percentages(line: str) -> str:
    r"""Return a line without what a program wrote over and over: how far it is.

    >>> without_percentages("    (3.00/100%)\r    (12.50/100%)\rno room\r")
    'no room'
    """
    parts = (part.strip() for part in line.split("\r"))
    return "\r".join(
        part for part in parts if part and not _PERCENT.fullmatch(part.strip(" ()\0"))
    )


def latest(written: str, told: Progress) -> tuple[int, int, str] | None:
    r"""Return done, total and unit of the last line that says them.

    >>> latest("    (3.00/100%)\r    (12.50/100%)\r", Progress(total=200, unit="MiB"))
    (25, 200, 'MiB')
    >>> latest("10 40 MiB\nwhat?\n", Progress())
    (10, 40, 'MiB')
    """
    for line in reversed(re.split(r"[\r\n]", written)):
        if percent := _PERCENT.fullmatch(line.strip(" ()\0")):
            share = min(100.0, float(percent[1]))
            return round(told.total * share / 100), told.total, told.unit
        if count := _COUNT.fullmatch(line.strip("\0")):
            done, total = int(count[1]), int(count[2])
            if 0 < total <= _LARGEST:
                unit = clean(count[3] or told.unit)[:_UNIT]
                return min(done, total), total, unit
    return None
