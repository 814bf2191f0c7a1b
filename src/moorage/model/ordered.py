# SPDX-License-Identifier: BSD-2-Clause
"""Objects in order, of which the next snapshot shares all but a few.

A list of thousands that is copied at each change costs more than it looks: every object
is counted once more, and looked at again whenever Python looks for garbage among what
is new. So it is kept in short runs, and a change copies one.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_RUN = 64
"""Objects of a run; one that has grown to twice as many is halved."""


class Ordered(Generic[T]):
    """Objects in the order of a key; it never changes.

    Parameters
    ----------
    items
        They are in that order.
    key
        Differs from object to object.
    """

    __slots__ = ("_key", "_runs")

    def __init__(self, items: Iterable[T], key: Callable[[T], Any]) -> None:
        self._key = key
        rows = tuple(items)
        starts = range(0, len(rows), _RUN)
        self._runs = tuple(rows[start : start + _RUN] for start in starts)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._runs)

    def without(self, item: T) -> "Ordered[T]":
        """Return the same without an object that is among them."""
        at = self._at(item)
        run = list(self._runs[at])
        del run[bisect_left(run, self._key(item), key=self._key)]
        return self._with_runs(at, run)

    def having(self, item: T) -> "Ordered[T]":
        """Return the same with one more object."""
        at = self._at(item)
        run = list(self._runs[at]) if self._runs else []
        insort(run, item, key=self._key)
        half = len(run) if len(run) < 2 * _RUN else _RUN
        return self._with_runs(at, run[:half], run[half:])

    def _at(self, item: T) -> int:
        """Return the number of the run where an object belongs."""
        key = self._key
        found = bisect_right(self._runs, key(item), key=lambda run: key(run[0]))
        return max(0, found - 1)

    def _with_runs(self, at: int, *runs: list[T]) -> "Ordered[T]":
        made = Ordered[T]((), self._key)
        new = tuple(tuple(run) for run in runs if run)
        made._runs = (*self._runs[:at], *new, *self._runs[at + 1 :])
        return made
