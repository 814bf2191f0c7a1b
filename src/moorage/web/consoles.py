# SPDX-License-Identifier: BSD-2-Clause
"""Consoles and screens of guests, in the page: a web socket each.

The door says first who is there, or why nobody is, and carries bytes from then on. Of a
serial console it holds back what the browser has not shown yet: a guest that says more
than can be read is slowed down, and fills nobody's memory.
"""

import asyncio
import secrets
import string
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from aiohttp import WSMsgType, web

from moorage.errors import MoorageError

from . import deeds
from .deed import Deed
from .kinds import INSTANCE
from .lookup import named
from .visit import Page, Visit

PROTOCOL = "moorage"
"""What a browser says that it speaks; behind it comes the secret of its session."""
_PIECE = 1 << 16
"""Bytes that are carried at once."""
_AHEAD = 1 << 18
"""Bytes that a browser is sent before it has shown what came earlier."""
_LOOK = 2.0
"""Seconds between two looks at whether somebody is signed in still."""
_BEAT = 20.0
"""Seconds after which a browser must say that it lives."""
_PASSWORD = 8
"""Characters of a password that VNC looks at."""
_KEYS = frozenset({4, 5, 255})
"""How messages of VNC begin that somebody causes: keys, the pointer, QEMU's own."""
Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opens: TypeAlias = Callable[[str, str, str], Awaitable[tuple[Any, Ends]]]
"""Opens a line, of an instance's name, a kind and a ticket."""


class Kind(NamedTuple):
    """A kind of lines.

    Attributes
    ----------
    name
        The master's.
    deed
        What it is called, in addresses and to people, and its command.
    script
        The page's.
    """

    name: str
    deed: Deed
    script: str


LINES = (
    Kind("serial", deeds.CONSOLE, "serial.js"),
    Kind("vnc", deeds.SCREEN, "screen.js"),
)


async def shown(kind: Kind, visit: Visit) -> Page:
    """Show the page of a line; it is opened by its script, when somebody asks."""
    found = await named(visit, INSTANCE, ("name",), visit.path["name"])
    (name,) = (row["name"] for row in found.objects())
    values = {
        "name": name,
        "what": kind.deed.label,
        "script": kind.script,
        "serial": kind.name == "serial",
        "refused": visit.wish(kind.deed.op).refused,
        "command": kind.deed.typed(name, {}),
    }
    return Page("console", values, paints=kind.name == "vnc")


class Consoles:
    """The lines that are open in browsers."""

    def __init__(self) -> None:
        self._links: set[web.WebSocketResponse] = set()

    async def serve(
        self,
        request: web.Request,
        kind: Kind,
        opens: Opens,
        still: Callable[[bool], bool],
    ) -> web.WebSocketResponse:
        """Carry a line until the guest or the browser hangs up, or nobody is signed in.

        Parameters
        ----------
        still
            Whether somebody is signed in; it gets whether he does something just now.
        """
        link = web.WebSocketResponse(
            heartbeat=_BEAT, max_msg_size=_PIECE, protocols=(PROTOCOL,), compress=False
        )
        await link.prepare(request)
        self._links.add(link)
        try:
            async with _opened(link, request.match_info["name"], kind, opens) as ends:
                await _carry(link, kind, ends, still)
        except (MoorageError, TimeoutError) as error:
            await _tell(link, error)
        except (OSError, RuntimeError):
            pass  # one of them went away
        finally:
            self._links.discard(link)
            await link.close()
        return link

    async def close(self) -> None:
        """Hang up on all: the door does not wait for who looks on."""
        await asyncio.gather(*(link.close() for link in set(self._links)))


async def _tell(link: web.WebSocketResponse, error: Exception) -> None:
    told = {"error": "the master did not answer in time", "hint": ""}
    if isinstance(error, MoorageError):
        told = {"error": error.message, "hint": error.hint or ""}
    with suppress(OSError, RuntimeError):
        await link.send_json(told)


@asynccontextmanager
async def _opened(
    link: web.WebSocketResponse, name: str, kind: Kind, opens: Opens
) -> AsyncIterator[Ends]:
    """Open a line, and say what is known of it."""
    letters = string.ascii_letters + string.digits
    ticket = "".join(secrets.choice(letters) for _ in range(_PASSWORD))
    ticket = "" if kind.name == "serial" else ticket
    told, ends = await opens(name, kind.name, ticket)
    try:
        known = {"instance": told["instance"], "node": told["node"]}
        if told.get("by_ticket") and ticket:
            known["password"] = ticket
        await link.send_json(known)
        yield ends
    finally:
        ends[1].close()
        with suppress(OSError):
            await ends[1].wait_closed()


async def _carry(
    link: web.WebSocketResponse,
    kind: Kind,
    ends: Ends,
    still: Callable[[bool], bool],
) -> None:
    """Carry bytes both ways until either end hangs up."""
    reader, writer = ends
    ahead = _Ahead() if kind.name == "serial" else None
    ways = [
        asyncio.create_task(one)
        for one in (
            _show(link, reader, ahead),
            _type(link, writer, ahead, partial(_counts, kind, still)),
            _mind(still),
        )
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


def _counts(kind: Kind, still: Callable[[bool], bool], data: bytes) -> bool:
    """Whether somebody may type this; a browser asks for pictures by itself."""
    return still(kind.name == "serial" or data[0] in _KEYS)


class _Ahead:
    """What a browser was sent and has not shown."""

    def __init__(self) -> None:
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    async def send(self, more: int) -> None:
        """Count bytes, once there is room for them."""
        await self._room.wait()
        self._count(more)

    def shown(self, words: str) -> None:
        """Count bytes that were shown, as the browser says."""
        if words.isascii() and words.isdecimal() and len(words) < 9:
            self._count(-min(int(words), self._bytes))

    def _count(self, more: int) -> None:
        self._bytes += more
        if self._bytes < _AHEAD:
            self._room.set()
        else:
            self._room.clear()


async def _show(
    link: web.WebSocketResponse, reader: asyncio.StreamReader, ahead: _Ahead | None
) -> None:
    while data := await reader.read(_PIECE):
        if ahead:
            await ahead.send(len(data))
        await link.send_bytes(data)


async def _type(
    link: web.WebSocketResponse,
    writer: asyncio.StreamWriter,
    ahead: _Ahead | None,
    may: Callable[[bytes], bool],
) -> None:
    async for message in link:
        if message.type is WSMsgType.TEXT and ahead:
            ahead.shown(message.data)
        elif message.type is WSMsgType.BINARY and message.data:
            if not may(message.data):
                return
            writer.write(message.data)
            await writer.drain()


async def _mind(still: Callable[[bool], bool]) -> None:
    """Return when nobody is signed in any more."""
    while still(False):  # noqa: ASYNC110 - nobody tells when a session is over
        await asyncio.sleep(_LOOK)
