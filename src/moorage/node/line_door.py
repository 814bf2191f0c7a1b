# SPDX-License-Identifier: BSD-2-Clause
"""The agent's door for lines to guests: a web socket each, for as long as it is used.

The first message is a `LineRequest`; the answer is a line of JSON, and then come the
guest's bytes.
"""

import asyncio
from collections.abc import Callable

from aiohttp import web
from msgspec import DecodeError, json

from moorage.errors import BadInput, Failed, MoorageError
from moorage.protocol import sender
from moorage.protocol.line import LineRequest

from . import wire
from .agent import Agent
from .lines import LONGEST_MESSAGE, StreamLine, WebLine, carry, traced

_LOOK = 2.0
"""Seconds between two looks at whether a line's key is good still."""


class LineDoor:
    """Carries lines to the guests of an agent.

    Parameters
    ----------
    checking
        Returns, for a request, what tells the pins of who asks, and raises an error
        where its key or certificate is good no more.
    """

    def __init__(
        self,
        agent: Agent,
        checking: Callable[[web.Request], Callable[[], frozenset[str]]],
    ) -> None:
        self._agent = agent
        self._checking = checking
        self._links: set[web.WebSocketResponse] = set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Carry a line until either end hangs up."""
        check = self._checking(request)
        link = web.WebSocketResponse(
            heartbeat=wire.SILENCE, max_msg_size=LONGEST_MESSAGE
        )
        await link.prepare(request)
        self._links.add(link)
        try:
            await self._carry(check, link)
        finally:
            self._links.discard(link)
        return link

    async def hang_up(self, _app: web.Application) -> None:
        """End all lines: an agent that is to end does not wait for who looks on."""
        links = (link.close() for link in set(self._links))
        await asyncio.gather(self._agent.close(), *links)

    async def _carry(
        self, check: Callable[[], frozenset[str]], link: web.WebSocketResponse
    ) -> None:
        try:
            check()  # who is nobody is told nothing else
            asked = await _asked(link)
            pins = check()  # and it may have taken its time
            sender.check(asked.sender, sender.ourselves(), self._agent.name)
            self._agent.obey(asked.term, pins)
            if asked.mark:
                self._agent.hear(asked.term, asked.mark, asked.sender, pins)
            found = await self._agent.line(asked.line, asked.term)
            line = await StreamLine.over(found)
        except (MoorageError, OSError) as error:
            known = error if isinstance(error, MoorageError) else Failed(str(error))
            await link.send_bytes(json.encode({"error": known.to_json()}))
            await link.close()
            return
        by = f"{asked.line.by or 'nobody named'}, at the master"
        if asked.sender.node:
            by += f" on {asked.sender.node}"
        with traced(asked.line.kind, asked.line.name, by):
            minding = asyncio.create_task(_minded(check, link))
            try:
                await carry(WebLine(link), line, json.encode({"result": None}))
            finally:
                minding.cancel()


async def _minded(
    check: Callable[[], frozenset[str]], link: web.WebSocketResponse
) -> None:
    """Hang up when the key that opened a line is good no more."""
    while True:
        await asyncio.sleep(_LOOK)
        try:
            check()
        except MoorageError:
            await link.close()
            return


async def _asked(link: web.WebSocketResponse) -> LineRequest:
    try:
        said = await link.receive_bytes(timeout=wire.SILENCE)
        return json.decode(said, type=LineRequest)
    except (TypeError, TimeoutError, DecodeError, RecursionError) as error:
        raise BadInput(f"the request is for no line: {error}") from None
