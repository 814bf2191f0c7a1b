# SPDX-License-Identifier: BSD-2-Clause
"""Lines to guests, carried: from a guest's socket to the master's, over web sockets.

Whichever side ends, both end. A side that takes nothing holds the other up: nothing is
kept in between but what the sockets hold.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Protocol

from aiohttp import ClientWebSocketResponse, WSMsgType, web

PIECE = 1 << 16
"""Bytes that are carried at once."""
LONGEST_MESSAGE = 4 * PIECE
"""Bytes of the longest message on a web socket."""


class Line(Protocol):
    """One end of a line."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""

    async def write(self, data: bytes) -> None:
        """Say them, when the other end has taken what was said before."""

    async def close(self) -> None:
        """Hang up."""


class StreamLine:
    """A line over a socket."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, connection: socket.socket) -> "StreamLine":
        """Return the line over a connected socket, which it closes in the end."""
        connection.setblocking(False)
        return cls(*await asyncio.open_connection(sock=connection))

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        """Say them."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


class WebLine:
    """A line over a web socket."""

    def __init__(self, link: web.WebSocketResponse | ClientWebSocketResponse) -> None:
        self._link = link

    async def read(self) -> bytes:
        """Return the next bytes; none at the end."""
        message = await self._link.receive()
        return bytes(message.data) if message.type is WSMsgType.BINARY else b""

    async def write(self, data: bytes) -> None:
        """Say them."""
        for start in range(0, len(data), PIECE):
            await self._link.send_bytes(data[start : start + PIECE])

    async def close(self) -> None:
        """Hang up."""
        await self._link.close()


async def carry(one: Line, other: Line) -> None:
    """Carry bytes both ways until either end hangs up; then both are closed."""
    ways = {
        asyncio.create_task(_copy(one, other)),
        asyncio.create_task(_copy(other, one)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for end in (one, other):
            with suppress(OSError, RuntimeError):
                await end.close()


async def _copy(source: Line, target: Line) -> None:
    with suppress(OSError, RuntimeError):  # it hung up
        while data := await source.read():
            await target.write(data)
