# SPDX-License-Identifier: BSD-2-Clause
"""How long things took since the master began: kept as counts, never as a list."""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from msgspec import Struct

BOUNDS = (0.01, 0.1, 1.0, 10.0, 60.0, 600.0)
"""Seconds that counts are kept for: how many took no longer."""


class Spread(Struct, frozen=True, kw_only=True):
    """How often something was done, and how long it took.

    Attributes
    ----------
    within
        How many took no longer than each of `BOUNDS`.
    number
        How many there were.
    seconds
        How long they took in all.
    failed
        How many failed.
    """

    within: list[int]
    number: int
    seconds: float
    failed: int = 0


@dataclass(slots=True)
class Timer:
    """Times one kind of thing."""

    seconds: float = 0.0
    failed: int = 0
    _counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

    def note(self, seconds: float) -> None:
        """Count one that took so long."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    @property
    def spread(self) -> Spread:
        """What was counted."""
        sums = [sum(self._counts[: at + 1]) for at in range(len(self._counts))]
        *within, number = sums
        return Spread(
            within=within, number=number, seconds=self.seconds, failed=self.failed
        )


class Measures:
    """What the engine measures.

    Attributes
    ----------
    verbs
        How long nodes took for the verbs of jobs, by their names.
    locks
        How long operations waited for their locks.
    waiting
        Since when those wait that do, by the numbers of their jobs: in seconds, from
        anywhere.
    """

    def __init__(self) -> None:
        self.verbs: dict[str, Timer] = {}
        self.locks = Timer()
        self.waiting: dict[int, float] = {}

    @contextmanager
    def verb(self, name: str) -> Iterator[None]:
        """Time a verb of a node."""
        timer, began = self.verbs.setdefault(name, Timer()), monotonic()
        try:
            yield
        except Exception:
            timer.failed += 1
            raise
        finally:
            timer.note(monotonic() - began)

    @contextmanager
    def lock(self, job: int) -> Iterator[None]:
        """Time a wait for locks."""
        began = self.waiting[job] = monotonic()
        try:
            yield
        finally:
            self.waiting.pop(job, None)
            self.locks.note(monotonic() - began)

    def longest_wait(self) -> float:
        """Return how long that job has waited for locks that waits longest."""
        return monotonic() - min(self.waiting.values(), default=monotonic())
