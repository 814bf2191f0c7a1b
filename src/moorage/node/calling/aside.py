# SPDX-License-Identifier: BSD-2-Clause
"""The way to the agents on an event loop of its own, in a thread of its own.

A thousand answers are received, deciphered and read there, and nobody who asks anything
else of the caller's loop waits for them.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from moorage.model import Node
from moorage.node import wire
from moorage.node.certificates.authority import Authority
from moorage.node.lines import Line
from moorage.protocol import Report, Verb
from moorage.protocol.line import GuestLine
from moorage.protocol.sender import Sender

from .buffers import SmallBuffers
from .client import CONNECT, HttpNodes
from .exchange import Exchange

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


class NodesAside:
    """The agents of a cluster, for another event loop than the one that asks them.

    It is made on the loop that will ask.

    Parameters
    ----------
    authority
        Gives this side its certificate, and new nodes theirs.
    sender
        Who asks, as the nodes are told.
    look
        Called before something is sent; it ends the process if that leads no more.

    Attributes
    ----------
    broken
        Set when the thread ended before its time: no call is answered any more.
    """

    def __init__(
        self,
        authority: Authority,
        sender: Sender,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._nodes = HttpNodes(authority)
        self._lines = Exchange(CONNECT, wire.SILENCE, leads=True)
        for one in (self._nodes.exchange, self._lines):
            one.sender, one.look = sender, look
        self._lines.mark = self._nodes.exchange.mark  # both are one master
        self._loop = SmallBuffers()
        self._here = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._here.get_exception_handler())
        self.broken = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="nodes", daemon=True)
        self._thread.start()

    async def call(self, node: Node, call: Verb[T], term: int, report: Report) -> T:
        """Run a verb on a node, as :meth:`moorage.jobs.Nodes.call` does."""

        def told(done: int, total: int, unit: str, note: str) -> None:
            self._here.call_soon_threadsafe(report, done, total, unit, note)

        return await self._there(self._nodes.call(node, call, term, told))

    async def ask(
        self, node: Node, calls: Sequence[Verb[object]], term: int
    ) -> list[object]:
        """Ask a node several things, as :meth:`moorage.jobs.Nodes.ask` does."""
        return await self._there(self._nodes.ask(node, calls, term))

    async def line(self, node: Node, wanted: GuestLine, term: int) -> Line:
        """Return a line to a guest on a node; it is the caller's loop that carries it.

        Raise what :meth:`.client.HttpNodes.line` does.
        """
        way = await self._there(self._nodes.apart(node))
        return await self._lines.line(node, wanted, term, way)

    async def close(self) -> None:
        """Close the connections, and end the thread."""
        await self._lines.close()
        if not self.broken.is_set():
            await self._there(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    def _run(self) -> None:
        """Serve the loop; say so if that ends otherwise than by being stopped."""
        try:
            self._loop.run_forever()
        except BaseException:  # noqa: BLE001 - whoever waits for answers is told
            _LOG.exception("nodes can be asked no more")
            with suppress(RuntimeError):  # nobody is there any more
                self._here.call_soon_threadsafe(self.broken.set)

    async def _end(self) -> None:
        """Give up what is under way."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._nodes.close()

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await asyncio.wrap_future(asked)
