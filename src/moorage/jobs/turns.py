# SPDX-License-Identifier: BSD-2-Clause
"""Much at once on one event loop, and everybody else gets a turn in between."""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

_IN_A_ROW = 4
"""What is begun before others get their turn: a question to a node with its TLS takes
some milliseconds."""
_LITTLE = 20
"""What is done before others get their turn where each takes a fraction of one."""
_AT_ONCE = 32
"""What is under way together: all of it may come to an end in one turn, and a
connection that waits for all others is made long before it is given up."""


async def breathing(things: Iterable[T]) -> AsyncIterator[T]:
    """Yield many things, each of which is little work; others get turns in between."""
    for number, one in enumerate(things, 1):
        yield one
        if number % _LITTLE == 0:
            await asyncio.sleep(0)


def let_go(things: dict[Any, Any] | list[Any]) -> None:
    """Empty what holds much, bit by bit; call it in a thread.

    Python frees what nobody holds in one go, and all threads wait meanwhile: for the
    answers of a thousand nodes, 20 ms.
    """
    take = things.popitem if isinstance(things, dict) else things.pop
    while things:
        take()


def give_back() -> None:
    """Give what is free back to the system; call it in a thread.

    Python and OpenSSL free what a thousand answers took, and the C library keeps it
    wherever something that stays lies above it: 45 KiB a node. It takes some
    milliseconds, and others are in nobody's way meanwhile. Without glibc nothing is
    done.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all, many at once, and return what comes of each, in order.

    The first error ends the waiting; what has begun is cancelled then, and no more
    begins.
    """
    tasks: list[asyncio.Task[T]] = []
    free = asyncio.Semaphore(_AT_ONCE - 1)
    failed = False

    def over(task: asyncio.Task[T]) -> None:
        nonlocal failed
        failed |= not _has_succeeded(task)
        free.release()

    try:
        for number, work in enumerate(works, 1):
            tasks.append(asyncio.create_task(work))
            tasks[-1].add_done_callback(over)
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
            await free.acquire()
            if failed:
                break
        # Not of all: to gather a thousand that have ended takes a long turn.
        await asyncio.gather(*(task for task in tasks if not _has_succeeded(task)))
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()


def _has_succeeded(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
