# SPDX-License-Identifier: BSD-2-Clause
"""Slots: how many jobs work at once, and who comes first.

A job takes a slot when it has its locks and its answers, and gives it back while it
waits for a node: whoever only waits is in nobody's way.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import count

from .job import Job

RUNNING_AT_ONCE = 20
"""Ganeti's default of ``max_running_jobs``."""


@dataclass(slots=True)
class _Waiter:
    job: Job
    turn: int
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class Slots:
    """Who has a slot, and who waits for one."""

    def __init__(self, number: int = RUNNING_AT_ONCE) -> None:
        self.number = number
        self.holders: set[int] = set()
        self._waiters: list[_Waiter] = []
        self._turns = count()

    async def take(self, job: Job) -> None:
        """Take a slot for `job`: the most urgent first, then whoever came first."""
        waiter = _Waiter(job, next(self._turns))
        self._waiters.append(waiter)
        self._admit()
        try:
            await waiter.granted.wait()
        except BaseException:
            self.release(job)
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def release(self, job: Job) -> bool:
        """Give back the slot of `job`; return whether it had one."""
        had = job.id in self.holders
        self.holders.discard(job.id)
        self._admit()
        return had

    def resize(self, number: int) -> None:
        """Let another number of jobs work at once; those that do go on."""
        self.number = number
        self._admit()

    def _admit(self) -> None:
        # A job's priority may change while it waits.
        self._waiters.sort(key=lambda waiter: (waiter.job.priority, waiter.turn))
        while self._waiters and len(self.holders) < self.number:
            waiter = self._waiters.pop(0)
            self.holders.add(waiter.job.id)
            waiter.granted.set()
