# SPDX-License-Identifier: BSD-2-Clause
"""Lines to guests, carried: from a guest's socket to the master's, over web sockets.

Whichever side ends, both end. A side that takes nothing holds the other up: nothing is
kept in between but what the sockets hold.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from aiohttp import ClientWebSocketResponse, WSMsgType

from moorage.protocol.line import Kind

from .text import clean

if TYPE_CHECKING:  # a master serves nobody by aiohttp, and spares its memory
    from aiohttp.web import WebSocketResponse

_LOG = logging.getLogger(__name__)
ALWAYS = {"always": True}
"""Marks a record of the log that is written however many there are."""
_WORDS: Mapping[Kind, str] = {"serial": "console", "vnc": "screen"}
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

    def __init__(self, link: "WebSocketResponse | ClientWebSocketResponse") -> None:
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


async def carry(one: Line, other: Line, said: bytes = b"") -> None:
    """Carry bytes both ways until either end hangs up; then both are closed.

    Parameters
    ----------
    said
        What the first end is told before; it may have hung up by now.
    """
    ways: set[asyncio.Task[None]] = set()
    try:
        with suppress(OSError, RuntimeError):
            await one.write(said)
            ways = {
                asyncio.create_task(_copy(one, other)),
                asyncio.create_task(_copy(other, one)),
            }
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await asyncio.gather(_close(one), _close(other))  # neither waits for the other


async def _close(end: Line) -> None:
    with suppress(OSError, RuntimeError):
        await end.close()


async def _copy(source: Line, target: Line) -> None:
    with suppress(OSError, RuntimeError):  # it hung up
        while data := await source.read():
            await target.write(data)


@contextmanager
def traced(kind: Kind, of: str, by: str) -> Iterator[None]:
    """Say in the log that somebody is at a guest, and that they have left.

    Nothing changes, so no job tells it; and a console is as good as a keyboard.
    """
    what = f"the {_WORDS[kind]} of {clean(of)}"
    began = time.monotonic()
    _LOG.info("%s is opened by %s", what, clean(by), extra=ALWAYS)
    try:
        yield
    finally:
        lasted = time.monotonic() - began
        _LOG.info(
            "%s is closed after %.0f s: it was opened by %s",
            *(what, lasted, clean(by)),
            extra=ALWAYS,
        )
