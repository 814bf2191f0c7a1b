# SPDX-License-Identifier: BSD-2-Clause
"""The master's way to the agents: HTTPS, patience, and reasons."""

import asyncio
import errno
import secrets
import socket
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import TypeVar, cast

import aiohttp
from msgspec import json
from msgspec.structs import replace

from moorage.errors import MoorageError, Unreachable
from moorage.model import Node, NodeFacts
from moorage.model.token import from_text
from moorage.protocol import (
    EnrolNode,
    ExpelNode,
    GetFacts,
    LeaveCluster,
    Report,
    Verb,
    one_by_one,
    silent,
    to_wire,
)
from moorage.protocol.line import GuestLine, LineRequest
from moorage.protocol.sender import SEVERAL, check, ourselves
from moorage.protocol.verb import AtMaster

from . import answers, enrolment, key_issuing, tls, wire
from .authority import Authority
from .lines import LONGEST, Line, WebLine
from .pins import Way
from .unanswered import inner_of, place_of, told_as_the_nodes, unreachable

R = TypeVar("R")

CONNECT = 5.0
"""Seconds to get a connection."""
_TRIES, _PATIENT = 3, 8
"""How often a connection is tried, and how often for a step of a job where the machine
is there and its agent is not: one that is upgraded is back in some seconds."""
_LOOK = 0.2
"""Seconds between two questions whether a node is in, or out."""
_ENDING = 1.0
"""Seconds that an answer may take to end when all is said."""
_FIRST_WORDS = 30.0
"""Seconds that a node may take from the door to its first answer."""


class HttpNodes:
    """The agents of a cluster.

    Parameters
    ----------
    authority
        Gives this side its certificate, and new nodes theirs.
    connect
        Seconds to get a connection.
    silence
        Seconds without a sign of life after which a verb's node is given up.
    leads
        Whether it is a master that asks; who only looks has no term of its own.

    Attributes
    ----------
    sender
        Who asks, as the nodes are told.
    """

    def __init__(
        self,
        authority: Authority,
        connect: float = CONNECT,
        silence: float = wire.SILENCE,
        *,
        leads: bool = True,
    ) -> None:
        self.sender = ourselves()
        self._authority = authority
        self._connect = connect
        self._silence = silence
        self._numbers = count(1)
        self._mark = secrets.token_hex(16) if leads else ""
        self._session: aiohttp.ClientSession | None = None
        self._ways: dict[tuple[str, bool], Way] = {}

    async def call(self, node: Node, call: Verb[R], term: int, report: Report) -> R:
        """Run a verb on a node.

        Some verbs are the master's own: `EnrolNode` lets a new node in, `ExpelNode`
        takes that back, however far it came; and those of :mod:`.key_issuing`.
        """
        if self._authority.keep():
            self._ways.clear()
        if type(call) in key_issuing.OWN:
            if not call.reads:
                self._ways.clear()
            return cast("R", key_issuing.OWN[type(call)](self._authority))
        if isinstance(call, EnrolNode):
            await enrolment.let_in(self._authority, from_text(call.token), node.name)
            report(0, 0, "log", _let_in_by(self._authority, node))
            return cast("R", await self._first_words(node, term, report))
        if isinstance(call, ExpelNode):
            return cast("R", await self._expel(node, term, report))
        node = key_issuing.believed(node, call)
        asked = key_issuing.outgoing(self._authority, node.name, call)
        way = self._way(node, asked)
        result = _only(await self._tried(node, [asked], term, report, way))
        shown = way.shown  # by then others may have asked for another way
        pin = shown.pin if shown else ""
        return cast("R", key_issuing.incoming(node.name, call, result, pin))

    async def ask(
        self, node: Node, calls: Sequence[Verb[object]], term: int
    ) -> list[object]:
        """Ask a node several things, as :meth:`moorage.jobs.Nodes.ask` does.

        Once the node has said that it takes them so, they go in one request.
        """
        way = self._way(node, calls[0])
        if way.speaks < SEVERAL or any(self._apart(node, one, way) for one in calls):

            async def alone(one: Verb[object]) -> object:
                return await self.call(node, one, term, silent)

            return await one_by_one(alone, calls)
        try:
            return await self._tried(node, calls, term, silent, way)
        except MoorageError as error:
            return [error] * len(calls)

    def _apart(self, node: Node, call: Verb[object], way: Way) -> bool:
        """Whether a call must not go with others on a way."""
        return isinstance(call, AtMaster) or self._way(node, call) is not way

    async def line(self, node: Node, wanted: GuestLine, term: int) -> Line:
        """Return a line to a guest on a node.

        Raises
        ------
        Unreachable
            If the node does not answer.
        MoorageError
            What the node says instead.
        """
        way = self._way(node, GetFacts())
        try:
            link = await asyncio.wait_for(self._web_socket(node, way), _FIRST_WORDS)
        except _BROKEN as error:
            raise unreachable(node, error, sent=False) from error
        try:
            asked = LineRequest(wanted, term, self._mark, self.sender)
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
            max_msg_size=LONGEST,
            timeout=aiohttp.ClientWSTimeout(ws_close=CONNECT),
            ssl=way.context,
        )

    async def _tried(
        self,
        node: Node,
        calls: Sequence[Verb[object]],
        term: int,
        report: Report,
        way: Way,
    ) -> list[object]:
        for attempt in count(1):
            try:
                return await self._ask(node, calls, term, report, way)
            except Unreachable as error:
                tries = min(_tries(call, error) for call in calls)
                if error.facts.get("sent") or attempt >= tries:
                    raise
                text = f"{error.message}; trying again ({attempt} of {tries - 1})"
                report(0, 0, "log", text)
                await asyncio.sleep(min(0.3 * attempt, 1.0))
        raise AssertionError  # the last attempt returned or raised

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            # TLS ends in the background: do not end the loop first.
            await asyncio.sleep(0.1)

    async def _first_words(self, node: Node, term: int, report: Report) -> NodeFacts:
        """Wait until a node that was let in serves with its new certificate."""
        for left in range(round(_FIRST_WORDS / _LOOK), -1, -1):
            try:
                way = self._way(node, GetFacts())
                found = await self._ask(node, [GetFacts()], term, report, way)
                return cast("NodeFacts", _only(found))
            except Unreachable as error:
                if not left:
                    error.facts["sent"] = True  # it has its keys: that is to be undone
                    raise
            await asyncio.sleep(_LOOK)
        raise AssertionError  # the last attempt returned or raised

    async def _expel(self, node: Node, term: int, report: Report) -> None:
        """Let a node leave that was let in, or was about to be.

        A door shows a certificate that is none of the cluster's: whoever has one was
        not let in. It is asked twice, for the door may be closing.
        """
        for last in (False, True):
            try:
                way = self._way(node, LeaveCluster())
                _only(await self._ask(node, [LeaveCluster()], term, report, way))
            except Unreachable as error:
                if error.facts.get("foreign") is not True:
                    raise
                if last:
                    return
            else:
                return
            await asyncio.sleep(_LOOK)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,
                limit_per_host=0,
                keepalive_timeout=wire.KEPT,
                socket_factory=lambda found: wire.steady(socket.socket(*found[:3])),
            )
            # Nothing is unpacked: a small answer could fill the memory.
            self._session = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                headers={"Accept-Encoding": "identity"},
            )
        return self._session

    def _way(self, node: Node, call: Verb[object]) -> Way:
        """Return the way to a node, which is another one when its pins are others."""
        dated = not (node.pins and call.lapsed)
        way = self._ways.get((node.uuid, dated))
        if way is None or way.pins != set(node.pins):
            clock = self._authority.clock if dated else None
            way = Way(self._authority.asking(), node.name, node.pins, clock)
            self._ways[node.uuid, dated] = way
        return way

    async def _ask(
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
        try:
            async with self._open().post(
                f"https://{place_of(node)}/call",
                data=b"\n".join(self._request(call, term) for call in calls),
                server_hostname=node.name,
                allow_redirects=False,  # to whatever the master reaches
                timeout=self._limits(calls),
                ssl=way.context,
            ) as answer:
                speaker = answers.speaker(answer.headers.get(wire.SENDER, "{}"))
                check(self.sender, speaker, node.name)
                way.speaks = speaker.newest
                lines = answers.lines(calls, answer.content.iter_any())
                for call in calls:
                    result = answers.result(call, lines, report)
                    found.append(await _outcome(node, result, answer.status))
                await _read_out(answer)
        except _UNSENT as error:
            raise unreachable(node, error, sent=False) from error
        except _BROKEN as error:
            if not found:
                raise unreachable(node, error, sent=True) from error
            found += [unreachable(node, error, sent=True)] * (len(calls) - len(found))
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
            "mark": self._mark,
            "sender": self.sender,
            "number": 0 if call.reads else next(self._numbers),
        }
        return json.encode(asked)


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


def _only(found: Sequence[object]) -> object:
    """Return what came of the one call; raise it, if it is an error."""
    [result] = found
    if isinstance(result, MoorageError):
        raise result
    return result


def _dated(found: object, way: Way) -> object:
    """Return facts with the end of the certificate that their node showed."""
    if way.shown is not None and isinstance(found, NodeFacts):
        return replace(found, certificate_ends=way.shown.ends)
    return found


def _tries(call: Verb[object], error: Unreachable) -> int:
    """Return how often a node is tried that failed in this way."""
    if not call.insists:
        return 1
    inner = inner_of(error.__cause__) if error.__cause__ else None
    absent = getattr(inner, "errno", None) == errno.ECONNREFUSED
    return _PATIENT if absent and not call.reads else _TRIES


def _let_in_by(authority: Authority, node: Node) -> str:
    """Return what the node's agent says, too: a person can compare the two."""
    by = tls.fingerprint(authority.certificate)
    return (
        f"node {node.name} was let in by the authority whose certificate has the "
        f"SHA-256 {by}"
    )


_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""There was no connection, so the node cannot have got the request."""
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)
"""There was one."""
