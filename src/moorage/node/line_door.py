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
from .lines import LONGEST_MESSAGE, StreamLine, WebLine, carry


class LineDoor:
    """Carries lines to the guests of an agent.

    Parameters
    ----------
    check
        Raises an error where a master's certificate is over.
    """

    def __init__(self, agent: Agent, check: Callable[[web.Request], None]) -> None:
        self._agent = agent
        self._check = check
        self._links: set[web.WebSocketResponse] = set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Carry a line until either end hangs up."""
        link = web.WebSocketResponse(
            heartbeat=wire.SILENCE, max_msg_size=LONGEST_MESSAGE
        )
        await link.prepare(request)
        self._links.add(link)
        try:
            await self._carry(request, link)
        finally:
            self._links.discard(link)
        return link

    async def hang_up(self, _app: web.Application) -> None:
        """End all lines: an agent that is to end does not wait for who looks on."""
        links = (link.close() for link in set(self._links))
        await asyncio.gather(self._agent.close(), *links)

    async def _carry(self, request: web.Request, link: web.WebSocketResponse) -> None:
        try:
            self._check(request)
            asked = await _asked(link)
            sender.check(asked.sender, sender.ourselves(), self._agent.name)
            if asked.mark:
                self._agent.hear(asked.term, asked.mark, asked.sender)
            found = await self._agent.line(asked.line, asked.term)
            line = await StreamLine.over(found)
        except (MoorageError, OSError) as error:
            known = error if isinstance(error, MoorageError) else Failed(str(error))
            await link.send_bytes(json.encode({"error": known.to_json()}))
            await link.close()
            return
        await link.send_bytes(json.encode({"result": None}))
        await carry(WebLine(link), line)


async def _asked(link: web.WebSocketResponse) -> LineRequest:
    try:
        said = await link.receive_bytes(timeout=wire.SILENCE)
        return json.decode(said, type=LineRequest)
    except (TypeError, TimeoutError, DecodeError, RecursionError) as error:
        raise BadInput(f"the request is for no line: {error}") from None
