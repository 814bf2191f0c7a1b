# SPDX-License-Identifier: BSD-2-Clause
"""Requests to an agent over HTTPS, and what comes back; without patience.

Several calls may go in one request, a line each, and are answered in turn
(:mod:`.server`).
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count

import aiohttp
from msgspec import json
from msgspec.structs import replace

from moorage.errors import MoorageError, Unreachable
from moorage.model import Node, NodeFacts
from moorage.node import wire
from moorage.node.lines import LONGEST_MESSAGE, Line, WebLine
from moorage.protocol import Report, Verb, to_wire
from moorage.protocol.line import GuestLine, LineRequest
from moorage.protocol.sender import check, ourselves

from . import answers, asking
from .pins import Way
from .unanswered import place_of, told_as_the_nodes, unreachable

_WRITTEN = 2 * 1024
"""Bytes of a request that are written at once."""
_ENDING = 1.0
"""Seconds that an answer may take to end when all is said."""
_TURNS = 4
"""Turns of the loop in which it notices that nodes hung up while it was busy: what goes
to an agent that was started anew meanwhile is no step that may have been done."""
_LIVES = 2 * wire.BEAT
"""Seconds since it said something in which a node that works on a verb has power."""
_OPENING = 30.0
"""Seconds that a line to a guest may take."""
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""There was no connection, so the node cannot have got the request."""
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)
"""There was one."""


class Exchange:
    """The connections to the agents of a cluster.

    Parameters
    ----------
    connect
        Seconds to get a connection.
    silence
        Seconds without a sign of life after which a node is given up.
    leads
        Whether it is a master that asks; who only looks has no term of its own.

    Attributes
    ----------
    sender
        Who asks, as the nodes are told.
    mark
        Drawn by chance: it tells this process from another that leads in its term. None
        of who only looks.
    look
        Called before something is sent; it raises, or ends the process, if who asks
        leads no more.
    """

    def __init__(self, connect: float, silence: float, *, leads: bool) -> None:
        self.sender = ourselves()
        self.look: Callable[[], None] = _leads
        self._connect = connect
        self._silence = silence
        self._numbers = count(1)
        self.mark = secrets.token_hex(16) if leads else ""
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self,
        node: Node,
        calls: Sequence[Verb[object]],
        term: int,
        report: Report,
        way: Way,
    ) -> list[object]:
        """Return what came of each call: an error, if that is what the node told.

        Raises
        ------
        Unreachable
            If no answer came, to the first one at least.
        """
        found: list[object] = []
        life = _Life()
        for _ in range(0 if all(call.reads for call in calls) else _TURNS):
            await asyncio.sleep(0)
        asked = b"\n".join(self._request(call, term) for call in calls)
        try:
            async with self._open().post(
                f"https://{place_of(node)}/call",
                data=self._in_pieces(asked),
                headers={"Content-Length": str(len(asked))},
                server_hostname=node.name,
                allow_redirects=False,  # to whatever the master reaches
                timeout=self._limits(calls),
                ssl=way.context,
            ) as answer:
                speaker = answers.speaker(answer.headers.get(wire.SENDER, "{}"))
                check(self.sender, speaker, node.name)
                way.speaks = speaker.newest
                lines = answers.lines(calls, life.noted(answer.content.iter_any()))
                for call in calls:
                    result = answers.result(call, lines, report)
                    async with asyncio.timeout(call.limit):
                        found.append(await _outcome(node, result, answer.status))
                await _read_out(answer)
        except _UNSENT as error:
            raise unreachable(node, error, sent=False) from error
        except _BROKEN as error:
            broken = unreachable(node, error, sent=True, lives=life.lasts())
            if not found:
                raise broken from error
            found += [broken] * (len(calls) - len(found))
        except Unreachable as error:
            if not found:
                raise
            found += [error] * (len(calls) - len(found))
        return [_dated(one, way) for one in found]

    def _limits(self, calls: Iterable[Verb[object]]) -> aiohttp.ClientTimeout:
        total = sum(call.limit for call in calls)
        return aiohttp.ClientTimeout(
            total=total, connect=self._connect, sock_read=self._silence
        )

    def _request(self, call: Verb[object], term: int) -> bytes:
        verb, args = to_wire(call)
        asked = {
            "verb": verb,
            "args": args,
            "term": term,
            "mark": self.mark,
            "sender": self.sender,
            "number": 0 if call.reads else next(self._numbers),
        }
        return json.encode(asked)

    async def _in_pieces(self, asked: bytes) -> AsyncIterator[bytes]:
        """Yield a request bit by bit: a connection keeps room for all it wrote at once.

        The process may have stood still since the last bit.
        """
        for at in range(0, len(asked), _WRITTEN):
            self.look()
            yield asked[at : at + _WRITTEN]

    async def line(self, node: Node, wanted: GuestLine, term: int, way: Way) -> Line:
        """Return a line to a guest on a node.

        Raises
        ------
        Unreachable
            If the node does not answer.
        MoorageError
            What the node says instead.
        """
        try:
            link = await asyncio.wait_for(self._web_socket(node, way), _OPENING)
        except _BROKEN as error:
            raise unreachable(node, error, sent=False) from error
        try:
            asked = LineRequest(wanted, term, self.mark, self.sender)
            await self._open_line(node, link, asked)
        except BaseException:
            await link.close()
            raise
        return WebLine(link)

    async def _open_line(
        self, node: Node, link: aiohttp.ClientWebSocketResponse, asked: LineRequest
    ) -> None:
        """Ask for a line, and raise what the node says instead."""
        try:
            self.look()
            await link.send_bytes(json.encode(asked))
            message = await link.receive(timeout=self._silence)
        except _BROKEN as error:
            raise unreachable(node, error, sent=False) from error
        if message.type is not aiohttp.WSMsgType.BINARY:
            raise unreachable(node, ConnectionError("it hung up"), sent=False)
        with told_as_the_nodes(node, "its console cannot be read"):
            answers.check_opened(message.data)

    async def _web_socket(
        self, node: Node, way: Way
    ) -> aiohttp.ClientWebSocketResponse:
        return await self._open().ws_connect(
            f"https://{place_of(node)}/line",
            server_hostname=node.name,
            heartbeat=wire.SILENCE,
            max_msg_size=LONGEST_MESSAGE,
            timeout=aiohttp.ClientWSTimeout(ws_close=self._connect),
            ssl=way.context,
        )

    async def close(self) -> None:
        """Close the connections; what is asked later makes new ones."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            # TLS ends in the background: do not end the loop first.
            await asyncio.sleep(0.1)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = asking.Frugal(
                limit=0,
                limit_per_host=0,
                keepalive_timeout=wire.KEPT,
                socket_factory=lambda found: wire.steady(socket.socket(*found[:3])),
            )
            self._session = asking.session(connector)
        return self._session


def _leads() -> None:
    """Say nothing against it."""


class _Life:
    """When a node said something last."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._heard = -_LIVES

    def lasts(self) -> bool:
        """Whether it was a moment ago."""
        return self._clock() < self._heard + _LIVES

    async def noted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield what it says."""
        async for chunk in chunks:
            self._heard = self._clock()
            yield chunk


async def _outcome(node: Node, result: Awaitable[object], status: int) -> object:
    """Return the result of a call, or the error that the node answered with.

    It is told as the node's: that may be anybody's by now, and what it advises is not
    what this program does.
    """
    try:
        with told_as_the_nodes(node, f"HTTP {status}"):
            return await result
    except MoorageError as error:
        if isinstance(error, Unreachable):
            raise
        return error


async def _read_out(answer: aiohttp.ClientResponse) -> None:
    """Read an answer to its end, so that its connection serves the next call, too."""
    with suppress(*_BROKEN):
        async with asyncio.timeout(_ENDING):
            while await answer.content.readany():
                pass


def _dated(found: object, way: Way) -> object:
    """Return facts with the end of the certificate that their node showed."""
    if way.shown is not None and isinstance(found, NodeFacts):
        return replace(found, certificate_ends=way.shown.ends)
    return found
