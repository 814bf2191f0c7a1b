# SPDX-License-Identifier: BSD-2-Clause
"""An event loop in a thread of its own: what is done there, nobody's work holds up."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Aside:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._rest: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="store", daemon=True
        )
        self._thread.start()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something there; it goes on when the caller is cancelled."""
        asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await asyncio.shield(asyncio.wrap_future(asked))

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something there that nobody waits for; called there."""
        task = self._loop.create_task(work)
        self._rest.add(task)
        task.add_done_callback(self._rest.discard)

    def end(self) -> None:
        """End the loop, and what is under way there."""
        asyncio.run_coroutine_threadsafe(_cancelled(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancelled() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
