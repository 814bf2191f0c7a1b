# SPDX-License-Identifier: BSD-2-Clause
"""Much at once on one event loop, and everybody else gets a turn in between."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
_IN_A_ROW = 16
"""What is begun before others get their turn."""


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all at once, and return what comes of each, in order.

    The first error ends the waiting; what has begun is cancelled then.
    """
    tasks: list[asyncio.Task[T]] = []
    try:
        for number, work in enumerate(works, 1):
            tasks.append(asyncio.create_task(work))
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
