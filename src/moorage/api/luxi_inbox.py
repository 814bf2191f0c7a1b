# SPDX-License-Identifier: BSD-2-Clause
"""What clients have sent that is not answered yet: bounded for each, and in sum.

A request may be long, and many may come at once. When they are too much together, the
client that has sent most of a request that has no end yet gives way: it is told so, and
those who ask for little are served as ever.
"""

import asyncio
from contextlib import suppress

from moorage.errors import BadInput, MoorageError, WrongState

from .luxi_messages import END

PIECE = 256 * 1024
"""Bytes that are looked through for the end of a request at a time."""
_PATIENCE = 5.0
"""Seconds that whoever was told no may go on to send."""
MOST = 256 * 1024 * 1024
"""Bytes of all requests that are not answered yet."""


class Inboxes:
    """Those of all clients.

    Parameters
    ----------
    longest
        Bytes of the longest request.
    most
        Bytes of all together.
    """

    def __init__(self, longest: int, most: int = MOST) -> None:
        self.longest = longest
        self._most = most
        self._held = 0
        self._open: set[Inbox] = set()

    def open(self, reader: asyncio.StreamReader) -> "Inbox":
        """Return the inbox of a client that has come."""
        found = Inbox(self, reader)
        self._open.add(found)
        return found

    def close(self, inbox: "Inbox") -> None:
        """Forget a client that has left, and what it sent."""
        inbox.close()
        self._open.discard(inbox)

    def count(self, more: int) -> None:
        """Note so many bytes more, or less; ask the largest to give way if need be."""
        self._held += more
        while more > 0 and self._held > self._most:
            largest = max(self._open, key=lambda one: one.size)
            if not largest.size:
                return  # all of it is being answered
            largest.give_way(self._most)


class Inbox:
    """What one client has sent.

    Attributes
    ----------
    size
        Bytes of the request that has no end yet.
    """

    def __init__(self, all_: Inboxes, reader: asyncio.StreamReader) -> None:
        self.size = 0
        self._all = all_
        self._reader = reader
        self._pieces: list[bytes] = []
        self._told: MoorageError | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._answering: list[int] = []

    async def next(self) -> bytes | MoorageError | None:
        """Return the next request, None at the end, or why there can be no next."""
        self._waiting = asyncio.current_task()
        try:
            return await self._next()
        except asyncio.IncompleteReadError as rest:
            if self._pieces or rest.partial:
                return BadInput("the connection ended in the middle of a request")
            return None
        except ConnectionError:
            return None
        except asyncio.CancelledError:
            if self._told:
                return self._told
            raise
        finally:
            self._waiting = None

    async def _next(self) -> bytes | MoorageError:
        while True:
            try:
                last = await self._reader.readuntil(END)
            except asyncio.LimitOverrunError as more:
                self._keep(await self._reader.readexactly(more.consumed))
                if self._told:
                    return self._told
            else:
                return self._whole(last[: -len(END)])

    def answered(self) -> None:
        """Let go of the request that was answered; clients are answered in turn."""
        self._all.count(-self._answering.pop(0))

    def close(self) -> None:
        """Let go of all."""
        self.drop()
        while self._answering:
            self.answered()

    def give_way(self, most: int) -> None:
        """Forget the request, and take no more of it."""
        self._told = WrongState(
            f"the requests to the master have {most >> 20} MiB together, more than it "
            f"takes at a time, and this one was the longest ({self.size >> 20} MiB so "
            "far): send it again, or in parts"
        )
        self.drop()
        if self._waiting and self._waiting is not asyncio.current_task():
            self._waiting.cancel()

    async def pour_away(self) -> None:
        """Let a client say the rest: one that is hung up on does not hear why."""
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_PATIENCE):
                while await self._reader.read(PIECE):
                    pass

    def drop(self) -> None:
        """Forget the request that has no end yet."""
        self._pieces.clear()
        self._all.count(-self.size)
        self.size = 0

    def _keep(self, piece: bytes) -> None:
        if self.size + len(piece) > self._all.longest:
            most = self._all.longest
            self._told = BadInput(f"a request of more than {most} bytes has no end")
            return
        self._pieces.append(piece)
        self.size += len(piece)
        self._all.count(len(piece))

    def _whole(self, last: bytes) -> bytes:
        found = b"".join([*self._pieces, last])
        self.drop()
        self._answering.append(len(found))
        self._all.count(len(found))
        return found
