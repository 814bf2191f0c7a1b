# SPDX-License-Identifier: BSD-2-Clause
"""Which nodes cannot be lost: the planner says, in a thread, not for each scrape."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from moorage.api.luxi_async import AsyncLuxi
from moorage.errors import MoorageError
from moorage.htools.formats import luxi
from moorage.htools.loader import load

_LOG = logging.getLogger(__name__)
ONE_AT_A_TIME = asyncio.Lock()
"""The planner takes a processor for itself."""
LASTS = 600.0
"""Seconds for which an answer is good enough."""


async def asked_of(client: AsyncLuxi) -> dict[str, Any]:
    """Return what the planner must know, from the master."""
    calls = luxi.CALLS.items()
    return {name: await client.call(method, *args) for name, (method, args) in calls}


class Survival:
    """The number of nodes whose loss would leave an instance without a place.

    Parameters
    ----------
    clock
        The time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: tuple[int, float] | None = None
        self._next = 0.0
        self._work: asyncio.Task[None] | None = None

    def lost(self, client: AsyncLuxi) -> tuple[int, float] | None:
        """Return how many, and when that was so; have it counted anew if it is old.

        It waits for nothing: the next one who asks hears of it.
        """
        now = self._clock()
        if now >= self._next and (self._work is None or self._work.done()):
            self._next = now + LASTS
            self._work = asyncio.create_task(self._count(client))
        return self._known

    async def _count(self, client: AsyncLuxi) -> None:
        try:
            async with ONE_AT_A_TIME:
                answers = await asked_of(client)
                number = await asyncio.to_thread(_failing, answers)
        except (MoorageError, TimeoutError) as error:
            _LOG.debug("nobody knows which nodes can be lost: %s", error)
            self._known = None
        else:
            self._known = number, self._clock()


def _failing(answers: dict[str, Any]) -> int:
    return sum(1 for _ in load(luxi.parse(answers)).state.failing)
