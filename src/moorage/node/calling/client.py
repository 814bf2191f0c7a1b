# SPDX-License-Identifier: BSD-2-Clause
"""The master's way to the agents: HTTPS, patience, and reasons."""

import asyncio
import errno
import ssl
from collections.abc import Sequence
from itertools import count
from typing import TypeVar, cast

from moorage.errors import MoorageError, Unreachable
from moorage.model import Node, NodeFacts
from moorage.model.token import from_text
from moorage.node import wire
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.lines import Line
from moorage.protocol import (
    EnrolNode,
    ExpelNode,
    GetFacts,
    LeaveCluster,
    Report,
    Verb,
    one_by_one,
    patience,
    silent,
)
from moorage.protocol.line import GuestLine
from moorage.protocol.sender import SEVERAL
from moorage.protocol.verb import AtMaster

from . import key_issuing
from .exchange import Exchange
from .letting_in import let_in
from .pins import Way, watched
from .unanswered import inner_of

R = TypeVar("R")

CONNECT = 5.0
"""Seconds to get a connection."""
_LOOK = 0.2
"""Seconds between two questions whether a node is in, or out."""
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
    exchange
        The requests and answers themselves; its sender is who asks.
    """

    def __init__(
        self,
        authority: Authority,
        connect: float = CONNECT,
        silence: float = wire.SILENCE,
        *,
        leads: bool = True,
    ) -> None:
        self.exchange = Exchange(connect, silence, leads=leads)
        self._authority = authority
        self._ways: dict[tuple[str, bool], Way] = {}
        self._shared: tuple[bytes, ssl.SSLContext] | None = None

    async def call(self, node: Node, call: Verb[R], term: int, report: Report) -> R:
        """Run a verb on a node.

        Some verbs are the master's own: `EnrolNode` lets a new node in, `ExpelNode`
        takes that back, however far it came; and those of :mod:`.key_issuing`.
        """
        self._keep_trust()
        if key_issuing.goes_nowhere(call):
            if not call.reads:
                self._ways.clear()
            return cast("R", key_issuing.done_here(self._authority, call))
        if isinstance(call, EnrolNode):
            await let_in(self._authority, from_text(call.token), node.name)
            report(0, 0, "log", _let_in_by(self._authority, node))
            return cast("R", await self._first_words(node, term, report))
        if isinstance(call, ExpelNode):
            return cast("R", await self._expel(node, term, report))
        node = key_issuing.believed(node, call)
        asked = key_issuing.outgoing(self._authority, node.name, call)
        way = self._way(node, asked)
        results, way = await self._tried(node, [asked], term, report, way)
        result, shown = (
            _only(results),
            way.shown,
        )  # by then others may have asked for another way
        pin = shown.pin if shown else ""
        found = key_issuing.incoming(self._authority, node.name, call, result, pin)
        return cast("R", found)

    async def ask(
        self, node: Node, calls: Sequence[Verb[object]], term: int
    ) -> list[object]:
        """Ask a node several things, as :meth:`moorage.jobs.Nodes.ask` does.

        Once the node has said that it takes them so, they go in one request.
        """
        try:
            self._keep_trust()
        except MoorageError as error:
            return [error] * len(calls)
        way = self._way(node, calls[0])
        if way.speaks < SEVERAL or any(self._apart(node, one, way) for one in calls):

            async def alone(one: Verb[object]) -> object:
                return await self.call(node, one, term, silent)

            return await one_by_one(alone, calls)
        try:
            found, way = await self._tried(node, calls, term, silent, way)
        except MoorageError as error:
            return [error] * len(calls)
        if way.speaks < SEVERAL:  # its agent was replaced by an older one meanwhile
            return await self.ask(node, calls, term)
        return found

    def _keep_trust(self) -> None:
        """Ask in a new certificate's name, once the old one is about to be over."""
        if self._authority.keep():
            self._ways.clear()

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
        return await self.exchange.line(node, wanted, term, await self.apart(node))

    async def apart(self, node: Node) -> Way:
        """Return a way to a node that nobody else takes, as another loop needs it."""
        self._keep_trust()
        return self._new_way(node, dated=True)

    async def _tried(
        self,
        node: Node,
        calls: Sequence[Verb[object]],
        term: int,
        report: Report,
        way: Way,
    ) -> tuple[list[object], Way]:
        """Return what came of some calls, and by which way in the end."""
        for again in count():
            try:
                found = await self.exchange.ask(node, calls, term, report, way)
            except Unreachable as error:
                if way.expired and all(call.lapsed for call in calls) and node.pins:
                    way = self._way_by(node, dated=False)  # nothing was sent yet
                    return await self._tried(node, calls, term, report, way)
                rests = min((_rests(call, error) for call in calls), key=len)
                if error.facts.get("sent") or again >= len(rests):
                    raise
                if not again:  # a job's log says so once for each attempt
                    text = f"{error.message}; trying again, {len(rests)} times at most"
                    report(0, 0, "log", text)
                await asyncio.sleep(rests[again])
            else:
                return found, way
        raise AssertionError  # the last attempt returned or raised

    async def close(self) -> None:
        """Close the connections."""
        await self.exchange.close()

    async def _first_words(self, node: Node, term: int, report: Report) -> NodeFacts:
        """Wait until a node that was let in serves with its new certificate."""
        for left in range(round(_FIRST_WORDS / _LOOK), -1, -1):
            try:
                way = self._way(node, GetFacts())
                found = await self.exchange.ask(node, [GetFacts()], term, report, way)
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
                _only(
                    await self.exchange.ask(node, [LeaveCluster()], term, report, way)
                )
            except Unreachable as error:
                if error.facts.get("foreign") is not True:
                    raise
                if last:
                    return
            else:
                return
            await asyncio.sleep(_LOOK)

    def _way(self, node: Node, call: Verb[object]) -> Way:
        """Return the way to a node: another one when its pins or its dates are over.

        There is one, and one connection, unless the node's certificate is over: what
        may be asked then goes by a way of its own.
        """
        way = self._way_by(node, dated=True)
        lapsed = way.expired and call.lapsed and node.pins
        return self._way_by(node, dated=False) if lapsed else way

    def _way_by(self, node: Node, *, dated: bool) -> Way:
        way = self._ways.get((node.uuid, dated))
        if way is None or way.over or way.pins != set(node.pins):
            way = self._ways[node.uuid, dated] = self._new_way(node, dated=dated)
        return way

    def _new_way(self, node: Node, *, dated: bool) -> Way:
        clock = self._authority.clock if dated else None
        return Way(self._context(), node.name, node.pins, clock)

    def _context(self) -> ssl.SSLContext:
        """Return the context of all new ways: another one when the files are others."""
        now = self._authority.asks_with()
        if self._shared is None or self._shared[0] != now:
            self._shared = now, watched(self._authority.asking())
        return self._shared[1]


def _rests(call: Verb[object], error: Unreachable) -> Sequence[float]:
    """Return the seconds before each new connection to a node that failed so."""
    if not call.insists:
        return ()
    inner = inner_of(error.__cause__) if error.__cause__ else None
    absent = getattr(inner, "errno", None) == errno.ECONNREFUSED
    step = not call.reads
    return patience.AGENT_AWAY if absent and step else patience.CONNECTION


def _let_in_by(authority: Authority, node: Node) -> str:
    """Return what the node's agent says, too: a person can compare the two."""
    by = tls.fingerprint(authority.own)
    return (
        f"node {node.name} was let in by the master whose certificate has the "
        f"SHA-256 {by}"
    )


def _only(found: Sequence[object]) -> object:
    """Return what came of the one call; raise it, if it is an error."""
    [result] = found
    if isinstance(result, MoorageError):
        raise result
    return result
