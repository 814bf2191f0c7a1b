# SPDX-License-Identifier: BSD-2-Clause
"""The agent on the network: HTTPS with the cluster's certificates on both sides.

One request: ``POST /call`` with ``{"verb", "args", "term"}``. The answer is lines of
JSON: any number of ``{"progress": [done, total, unit, note]}``, then one ``{"result":
…}`` or ``{"error": …}``.
"""

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import Annotated, Any

from aiohttp import web
from msgspec import DecodeError, Meta, Struct, ValidationError, json

from moorage.errors import BadInput, Failed, MoorageError

from . import tls
from .agent import Agent

_LOG = logging.getLogger(__name__)
_LARGEST = 64 * 1024 * 1024


class Request(Struct, frozen=True):
    """What a master asks for.

    Attributes
    ----------
    term
        Which master it is. It only rises, so a slip far up would shut out all masters.
    """

    verb: str
    args: dict[str, Any]
    term: Annotated[int, Meta(ge=0, lt=1 << 53)]


def application(agent: Agent) -> web.Application:
    """Return the web application of an agent."""
    under_way: set[asyncio.Task[None]] = set()

    async def call(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await answer.prepare(request)
        lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        # The verb goes on when the caller dies: what it began must come to an end.
        work = asyncio.create_task(_run(agent, body, lines))
        under_way.add(work)
        work.add_done_callback(under_way.discard)
        while (line := await lines.get()) is not None:
            await answer.write(json.encode(line) + b"\n")
        await work
        return answer

    app = web.Application(client_max_size=_LARGEST)
    app.add_routes([web.post("/call", call)])
    return app


async def _run(
    agent: Agent, body: bytes, lines: asyncio.Queue[dict[str, Any] | None]
) -> None:
    def report(done: int, total: int, unit: str, note: str) -> None:
        lines.put_nowait({"progress": [done, total, unit, note]})

    try:
        asked = _decoded(body)
        result = await agent.handle(asked.verb, asked.args, asked.term, report)
        lines.put_nowait({"result": result})
    except MoorageError as error:
        lines.put_nowait({"error": error.to_json()})
    except Exception as error:  # noqa: BLE001
        _LOG.exception("a verb broke")
        told = Failed(f"internal error on the node: {type(error).__name__}: {error}")
        lines.put_nowait({"error": told.to_json()})
    finally:
        lines.put_nowait(None)


def _decoded(body: bytes) -> Request:
    try:
        return json.decode(body, type=Request)
    except ValidationError as error:
        raise BadInput(f"the request is no call: {error}") from None
    except (DecodeError, UnicodeError) as error:
        raise BadInput(f"the request is not JSON: {error}") from None


async def serve(agent: Agent, keys: Path, address: str, port: int) -> web.AppRunner:
    """Serve an agent; clean the returned runner up to end it.

    Raises
    ------
    Failed
        If the port cannot be had.
    """
    runner = web.AppRunner(application(agent), access_log=None)
    await runner.setup()
    await listen(runner, address, port, tls.serving(keys))
    return runner


async def listen(
    runner: web.AppRunner, address: str, port: int, context: ssl.SSLContext
) -> None:
    """Listen; a runner that cannot is cleaned up.

    Raises
    ------
    Failed
        If the port cannot be had.
    """
    try:
        await web.TCPSite(
            runner, address, port, ssl_context=context, reuse_address=True
        ).start()
    except OSError as error:
        await runner.cleanup()
        cause = os.strerror(error.errno) if error.errno else str(error)
        raise Failed(f"cannot listen at {address}:{port}: {cause}") from error
