# SPDX-License-Identifier: BSD-2-Clause
"""The master's way to the agents: HTTPS, patience, and reasons."""

import asyncio
import os
from typing import Any

import aiohttp
from msgspec import json

from moorage.errors import Failed, Unreachable, from_json
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
_READING = frozenset({"facts", "guests", "guest", "providers", "oses", "device"})
_TRIES = 3
"""How often a connection is tried: an agent that restarts is back in a second."""


class HttpNodes:
    """The agents of a cluster.

    Parameters
    ----------
    authority
        Gives this side its certificate, and new nodes theirs.
    """

    def __init__(self, authority: tls.Authority) -> None:
        self._authority = authority
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
                timeout=aiohttp.ClientTimeout(total=patience, connect=CONNECT),
            ) as answer:
                return await _result(node, answer, report)
        except aiohttp.ClientConnectorError as error:
            raise _unreachable(node, error, sent=False) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(node, error, sent=True) from error


async def _result(node: Node, answer: aiohttp.ClientResponse, report: Report) -> Any:  # noqa: ANN401
    # Lines may be longer than aiohttp's own line limit, so they are cut here.
    pending = b""
    async for chunk in answer.content.iter_any():
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            said = json.decode(line)
            if "progress" in said:
                report(*said["progress"])
            elif "error" in said:
                raise from_json(said["error"])
            else:
                return said["result"]
    raise Failed(f"node {node.name} ended its answer in the middle")


def _unreachable(node: Node, error: BaseException, *, sent: bool) -> Unreachable:
    number = getattr(error, "errno", None)
    cause = os.strerror(number) if number else str(error) or type(error).__name__
    return Unreachable(
        f"node {node.name} ({node.primary_ip}:{node.port}) does not answer: {cause}",
        node=node.name,
        cause=cause,
        sent=sent,
    )
