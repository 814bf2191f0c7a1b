# SPDX-License-Identifier: BSD-2-Clause
"""Proxies between the master and the agents, which lose, delay and refuse what passes.

They see TLS, and so nothing but bytes.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

PASS, CUT, LATE, REFUSE = "pass", "cut", "late", "refuse"
HELD = 4.0
"""Seconds by which a request that is late arrives after its connection broke."""


class Proxy:
    """The way to one agent.

    Attributes
    ----------
    mode
        ``pass``; ``cut``: requests arrive, replies are lost; ``late``: requests arrive
        some seconds after the master's connection broke; ``refuse``: no connection.
    """

    def __init__(self, address: str, outside: int, inside: int) -> None:
        self.mode = PASS
        self._at = (address, outside, inside)
        self._links: set[asyncio.StreamWriter] = set()

    async def serve(self) -> None:
        address, outside, _ = self._at
        await asyncio.start_server(self._link, address, outside)

    async def _link(self, up: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        address, _, inside = self._at
        if self.mode == REFUSE:
            back.transport.abort()
            return
        try:
            down, on = await asyncio.open_connection(address, inside)
        except OSError:
            back.transport.abort()
            return
        await asyncio.gather(
            self._requests(up, on, back), self._replies(down, back, on)
        )

    async def _requests(
        self,
        source: asyncio.StreamReader,
        agent: asyncio.StreamWriter,
        master: asyncio.StreamWriter,
    ) -> None:
        late = False
        with suppress(OSError):
            while data := await source.read(65536):
                if self.mode == LATE and not late:
                    late = True
                    master.transport.abort()
                    await asyncio.sleep(HELD)
                agent.write(data)
                await agent.drain()
        agent.close()

    async def _replies(
        self,
        source: asyncio.StreamReader,
        master: asyncio.StreamWriter,
        agent: asyncio.StreamWriter,
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if self.mode == CUT:
                    agent.transport.abort()
                    break
                master.write(data)
                await master.drain()
        master.transport.abort()


class Proxies:
    """One proxy a node, in a thread of their own."""

    def __init__(self, addresses: dict[str, str], outside: int, inside: int) -> None:
        self.by_node = {
            node: Proxy(address, outside, inside) for node, address in addresses.items()
        }
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        for proxy in self.by_node.values():
            self._do(proxy.serve())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        """Hang up on everybody."""
        self._do(_end())
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _end() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
