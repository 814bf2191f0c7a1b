# SPDX-License-Identifier: BSD-2-Clause
"""Connections that wait for their next use, for many threads."""

import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

_FRESH = 30.0
"""Seconds that a connection waits at most: the other side hangs up some time."""


class _Link(Protocol):
    def close(self) -> None:
        """Hang up."""

    def fileno(self) -> int:
        """Return the number of the socket's descriptor; -1 where there is none."""


L = TypeVar("L", bound=_Link)


class Pool(Generic[L]):
    """Connections, each good for one request at a time.

    A process that was forked shares none with its parent: both would read the same
    answer.

    Parameters
    ----------
    make
        Makes a connection.
    most
        How many wait; whoever comes back when there are as many is closed.
    """

    def __init__(self, make: Callable[[], L], most: int = 8) -> None:
        self._make = make
        self._idle: deque[tuple[L, float]] = deque(maxlen=most)
        self._owner = os.getpid()

    @contextmanager
    def lent(self) -> Iterator[L]:
        """Lend a connection; it is closed if anything is raised meanwhile."""
        link = self._taken()
        try:
            yield link
        except BaseException:
            link.close()  # an answer may be on its way: the next one must not read it
            raise
        if len(self._idle) == self._idle.maxlen:
            link.close()
        else:
            self._idle.append((link, time.monotonic()))

    def _taken(self) -> L:
        if self._owner != os.getpid():
            self._idle.clear()
            self._owner = os.getpid()
        while self._idle:
            try:
                link, since = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if time.monotonic() - since < _FRESH and not _has_news(link.fileno()):
                return link
            link.close()
        return self._make()

    def close(self) -> None:
        """Close those that wait."""
        while self._idle:
            link, _ = self._idle.pop()
            link.close()


def _has_news(descriptor: int) -> bool:
    """Whether something can be read, where nothing was asked: the other hung up."""
    if descriptor < 0:
        return True
    watch = select.poll()
    watch.register(descriptor, select.POLLIN)
    return bool(watch.poll(0))
