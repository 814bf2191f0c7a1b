# SPDX-License-Identifier: BSD-2-Clause
"""The agent on the network: HTTPS with the cluster's certificates on both sides.

One request: ``POST /call`` with ``{"verb", "args", "term", "number", "mark",
"sender"}``. The answer tells in the header ``Moorage`` who gives it, and is lines of
JSON: any number of ``{"progress": [done, total, unit, note]}`` and of
``{"alive": true}``, then one ``{"result": …}`` or ``{"error": …}``. Several requests
may come together, a line each; they are done, and answered, one after the other.

Besides, ``/line`` is a web socket to a guest's console or screen (`LineRequest`).
"""

import asyncio
import errno
import logging
import ssl
import time
from collections.abc import Callable
from typing import Annotated, Any

from aiohttp import web
from msgspec import DecodeError, Meta, Struct, ValidationError, json

from moorage.errors import BadInput, Failed, MoorageError, WrongState
from moorage.protocol import Report
from moorage.protocol import sender as versions
from moorage.protocol.sender import Mark, Sender, Term

from . import wire
from .agent import Agent, Speaker
from .certificates.keys import Keys
from .doors.doorkeeper import Limits
from .doors.listening import listen
from .line_door import LineDoor

_LOG = logging.getLogger(__name__)
_LARGEST = 64 * 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What a file system says that takes nothing more."""
STRANGERS = Limits()
"""What those get who have shown no certificate yet."""


_HEADERS = {
    "Content-Type": "application/x-ndjson",
    wire.SENDER: json.encode(versions.ourselves()).decode(),
}


class Request(Struct, frozen=True):
    """What a master asks for.

    Attributes
    ----------
    number
        Which of the master's requests; 0 if it does not count them.
    sender
        Who asks; a master from before that was told speaks version 1.
    """

    verb: str
    args: dict[str, Any]
    term: Term
    number: Annotated[int, Meta(ge=0, lt=1 << 53)] = 0
    mark: Mark = ""
    sender: Sender = Sender()


def application(
    agent: Agent, beat: float = wire.BEAT, clock: Callable[[], float] = time.time
) -> web.Application:
    """Return the web application of an agent.

    Parameters
    ----------
    beat
        Seconds between two signs of life of a verb under way.
    clock
        The time in seconds.
    """
    under_way: set[asyncio.Task[None]] = set()

    async def call(request: web.Request) -> web.StreamResponse:
        check = checking(request)
        body = await request.read()
        answer = web.StreamResponse(headers=_HEADERS)
        await answer.prepare(request)
        lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        # The verb goes on when the caller dies: what it began must come to an end. To
        # end it before its time is another verb, script.kill.
        work = asyncio.create_task(_run(agent, body, lines, check))
        under_way.add(work)
        work.add_done_callback(under_way.discard)
        beating = asyncio.create_task(_beat(lines, beat))
        try:
            while (line := await lines.get()) is not None:
                await answer.write(json.encode(line) + b"\n")
            await work
        except ConnectionError:
            pass  # nobody is there to hear more
        finally:
            beating.cancel()
        return answer

    def checking(request: web.Request) -> Callable[[], frozenset[str]]:
        """Return what tells who asks, also when it has hung up by then.

        A request forgets its connection, while what it asked for goes on.
        """
        link = request.get_extra_info("ssl_object")
        return lambda: _speaker(agent, link, clock())

    door = LineDoor(agent, checking)
    app = web.Application(client_max_size=_LARGEST)
    app.add_routes([web.post("/call", call), web.get("/line", door.serve)])
    app.on_shutdown.append(door.hang_up)
    return app


async def _beat(lines: asyncio.Queue[dict[str, Any] | None], seconds: float) -> None:
    """Say now and then that the node works on it."""
    while True:
        await asyncio.sleep(seconds)
        lines.put_nowait({"alive": True})


def _speaker(agent: Agent, link: ssl.SSLObject | None, now: float) -> frozenset[str]:
    """Return the pins of who asks; refuse a master whose certificate is good no more.

    That it was good was seen when the connection was made. Who hung up before anybody
    looked has shown none.
    """
    peer = link.getpeercert() if link else None
    shown = link.getpeercert(binary_form=True) if link else None
    pins = agent.speaker(shown or b"")
    until = str(peer["notAfter"]) if peer else ""
    if until and ssl.cert_time_to_seconds(until) < now:
        raise WrongState(
            f"the master's certificate expired on {until}, by this node's clock",
            hint="set the clocks of both; then: gnt-cluster verify",
        )
    return pins


async def _run(
    agent: Agent,
    body: bytes,
    lines: asyncio.Queue[dict[str, Any] | None],
    check: Callable[[], frozenset[str]],
) -> None:
    def report(done: int, total: int, unit: str, note: str) -> None:
        lines.put_nowait({"progress": [done, total, unit, note]})

    for text in body.split(b"\n"):
        lines.put_nowait(await _answer(agent, text, report, check))
        await asyncio.sleep(0)  # others get their turn
    lines.put_nowait(None)


async def _answer(
    agent: Agent, text: bytes, report: Report, check: Callable[[], frozenset[str]]
) -> dict[str, Any]:
    """Return the last line of the answer to one request."""
    try:
        pins = check()
        asked = _decoded(text)
        versions.check(asked.sender, versions.ourselves(), agent.name)
        if asked.mark:
            agent.hear(asked.term, asked.mark, asked.sender, pins)
        result = await agent.handle(
            asked.verb,
            asked.args,
            asked.term,
            report,
            asked.number,
            Speaker(asked.mark, pins),
        )
    except MoorageError as error:
        return {"error": error.to_json()}
    except Exception as error:  # noqa: BLE001
        return {"error": _broken(agent.name, error).to_json()}
    else:
        return {"result": result}


def _broken(node: str, error: Exception) -> Failed:
    """Return what is told of an error that no verb expects: of its disk, or of ours."""
    if isinstance(error, OSError) and error.errno in _FULL:
        where = f" ({error.filename})" if error.filename else ""
        return Failed(
            f"node {node} cannot write what it must keep of its own{where}: "
            f"{error.strerror}",
            hint=f"make room where the agent of node {node} keeps its state",
        )
    _LOG.exception("a verb broke", exc_info=error)
    return Failed(f"internal error on the node: {type(error).__name__}: {error}")


def _decoded(body: bytes) -> Request:
    try:
        return json.decode(body, type=Request)
    except ValidationError as error:
        raise BadInput(f"the request is no call: {error}") from None
    except (DecodeError, UnicodeError, RecursionError) as error:
        raise BadInput(f"the request is not JSON: {error}") from None


async def serve(
    agent: Agent, keys: Keys, address: str, port: int, limits: Limits = STRANGERS
) -> web.AppRunner:
    """Serve an agent; clean the returned runner up to end it.

    Raises
    ------
    Failed
        If the port cannot be had.
    """
    # Longer than the master keeps it: who asks must be the one that hangs up.
    kept = 2 * wire.KEPT
    made = application(agent)
    runner = web.AppRunner(made, access_log=None, keepalive_timeout=kept)
    await runner.setup()
    await listen(runner, address, port, keys.context, limits)
    return runner
