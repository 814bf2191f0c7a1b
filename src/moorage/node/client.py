# SPDX-License-Identifier: BSD-2-Clause
"""The master's way to the agents: HTTPS, patience, and reasons."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from msgspec import json

from moorage.errors import Unreachable, from_json
from moorage.jobs import Call, Report
from moorage.model import Node
from moorage.model.token import from_text

from . import join, tls

CONNECT = 5.0
"""Seconds to get a connection."""
SLOW = 3600.0
"""Seconds that any verb may last."""
QUICK = 15.0
"""Seconds that a reading verb may last."""
_READING = frozenset({"facts", "guests", "guest", "providers", "oses", "devices"})
_TRIES = 3
"""How often a connection is tried: an agent that restarts is back in a second."""


class HttpNodes:
    """The agents of a cluster.

    Parameters
    ----------
    authority
        Gives this side its certificate, and new nodes theirs.
    connect
        Seconds to get a connection.
    """

    def __init__(self, authority: tls.Authority, connect: float = CONNECT) -> None:
        self._authority = authority
        self._connect = connect
        self._session: aiohttp.ClientSession | None = None

    async def call(self, node: Node, call: Call, term: int, report: Report) -> Any:  # noqa: ANN401
        """Run a verb on a node; ``node.enrol`` lets a new node in."""
        if call.verb == "node.enrol":
            token = from_text(str(call.args["token"]))
            await join.let_in(self._authority, token, node.name)
            return await self._first_words(node, term, report)
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._ask(node, call, term, report)
            except Unreachable as error:
                if error.facts.get("sent") or attempt == _TRIES:
                    raise
                text = f"{error.message}; trying again ({attempt} of {_TRIES - 1})"
                report(0, 0, "log", text)
                await asyncio.sleep(0.3 * attempt)
        raise AssertionError  # the last attempt returned or raised

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _first_words(self, node: Node, term: int, report: Report) -> Any:  # noqa: ANN401
        """Wait until a node that was let in serves with its new certificate."""
        for _ in range(20):
            try:
                return await self._ask(node, Call("facts"), term, report)
            except Unreachable:
                await asyncio.sleep(0.1)
        return await self._ask(node, Call("facts"), term, report)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._authority.asking(), limit=0, limit_per_host=0
            )
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    async def _ask(self, node: Node, call: Call, term: int, report: Report) -> Any:  # noqa: ANN401
        patience = QUICK if call.verb in _READING else SLOW
        asked = {"verb": call.verb, "args": call.args, "term": term}
        try:
            async with self._open().post(
                f"https://{node.primary_ip}:{node.port}/call",
                data=json.encode(asked),
                server_hostname=node.name,
                timeout=aiohttp.ClientTimeout(patience, self._connect),
            ) as answer:
                return await _result(node, answer, report)
        except _UNSENT as error:
            raise _unreachable(node, _cause(error), sent=False) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(node, _cause(error), sent=True) from error


_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""There was no connection, so the node cannot have got the request."""


async def _result(node: Node, answer: aiohttp.ClientResponse, report: Report) -> Any:  # noqa: ANN401
    """Return the result that an answer ends with.

    Raises
    ------
    Unreachable
        If it does not: whatever was asked for, it may have been done.
    MoorageError
        The one that the answer ends with.
    """
    async for line in _lines(answer):
        match _decoded(line):
            case {"progress": [done, total, unit, note]}:
                report(done, total, unit, note)
            case {"error": dict() as error}:
                raise from_json(error)
            case {"result": result}:
                return result
            case _:
                break
    cause = f"what answers is no agent (HTTP {answer.status})"
    raise _unreachable(node, cause, sent=True)


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines; they may be longer than aiohttp's own limit."""
    pending: list[bytes] = []
    async for chunk in answer.content.iter_any():
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join([*pending, end])
            pending = []
        pending.append(rest)


def _decoded(line: bytes) -> Any:  # noqa: ANN401
    """Return a line's value; None for what is not JSON."""
    try:
        return json.decode(line)
    except ValueError:
        return None


def _cause(error: BaseException) -> str:
    """Return why, in a line."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    elif isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, ssl.SSLError):  # its number is no system's error
        words = getattr(error, "verify_message", "") or error.reason or str(error)
        return f"no trust in its certificate: {' '.join(words.split())}"
    number = getattr(error, "errno", None)
    words = os.strerror(number) if number else str(error)
    return " ".join(words.split()) or type(error).__name__


def _unreachable(node: Node, cause: str, *, sent: bool) -> Unreachable:
    return Unreachable(
        f"node {node.name} ({node.primary_ip}:{node.port}) does not answer: {cause}",
        node=node.name,
        cause=cause,
        sent=sent,
    )
