# SPDX-License-Identifier: BSD-2-Clause
"""The door itself: who comes in, how requests are read, and what they are answered.

A request passes in this order: who it is, how much that one has under way, whether the
path and the role are right, then arguments and body. Nothing is read of who is nobody.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import DecodeError, json

from moorage.api.luxi_async import AsyncLuxi
from moorage.api.wanted import Wanted
from moorage.errors import MoorageError
from moorage.node.lines import ALWAYS

from .events import Events, Hub, blocks, heard
from .limits import Gate, Limits
from .passwords import REALM
from .refusals import HttpError, refusal
from .roles import Role, User
from .route import Asked, Route
from .survival import Survival
from .users import Entry, Users, named

_LOG = logging.getLogger(__name__)
_JSON = "application/json"
USER = web.RequestKey("user", User)
"""Who asks, once that is known."""
MADE = web.RequestKey("made", list[int])
"""Numbers of the jobs that a request made."""
_ID = web.RequestKey("id", str)
REQUEST_ID = "X-Request-Id"
"""Names a request in the answer: logs and the audit log have the same word."""
_WRITE = 10.0
"""Seconds that somebody may take to read what happened."""
_LONG = 2_000
"""Entries of a list that is encoded in a thread."""


class Pages(Protocol):
    """What is shown to people, beside the resources: who comes in has a cookie.

    Attributes
    ----------
    root
        The path that all of them begin with.
    routes
        Method, path and handler of each.
    """

    root: str
    routes: Sequence[tuple[str, str, Handler]]

    async def enter(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Return the answer to a request, whatever comes of it."""

    async def close(self) -> None:
        """Hang up on all who would stay."""


@dataclass(frozen=True, slots=True)
class Door:
    """What the application needs.

    Attributes
    ----------
    luxi
        The way to the master.
    routes
        What it answers.
    hub
        Hears what happens.
    survival
        Knows which nodes cannot be lost.
    pages
        What is shown to people; None for nothing.
    """

    luxi: AsyncLuxi
    users: Users
    gate: Gate
    routes: tuple[Route, ...]
    hub: Hub
    survival: Survival = field(default_factory=lambda: Survival(time.time))
    pages: Pages | None = None

    async def admit(self, shown: str, address: str) -> Entry:
        """Return the line by which somebody comes in who shows a header.

        Raises
        ------
        HttpError
            If that is nobody, or failed too often.
        """
        who = address, named(shown)
        self.gate.check(*who)
        found = await self.users.line(shown, partial(self.gate.check, *who))
        if found is None:
            if shown:
                self.gate.failed(*who)
            raise HttpError(401)
        return found


def application(door: Door) -> web.Application:
    """Return the web application of the door."""

    @web.middleware
    async def enter(request: web.Request, handler: Handler) -> web.StreamResponse:
        begun = time.monotonic()
        door.gate.heard.add(request.protocol)
        request[_ID] = secrets.token_hex(8)
        if door.pages and is_below(door.pages.root, request.path):
            answer = await door.pages.enter(request, handler)
        else:
            answer = await _entered(door, request, handler)
        if not answer.prepared:
            answer.headers[REQUEST_ID] = request[_ID]
        took = time.monotonic() - begun
        door.gate.note(answer.status, took)
        _log(request, answer.status, took)
        return answer

    app = web.Application(middlewares=[enter])
    for route in door.routes:
        app.router.add_route(route.method, route.path, _serving(door, route))
    for method, path, handler in door.pages.routes if door.pages else ():
        app.router.add_route(method, path, handler)

    async def close(_app: web.Application) -> None:
        await door.hub.close()
        if door.pages:
            await door.pages.close()

    app.on_shutdown.append(close)
    return app


def is_below(root: str, path: str) -> bool:
    """Whether a path is the root, or begins with it."""
    return path == root or path.startswith(f"{root}/")


async def _entered(
    door: Door, request: web.Request, handler: Handler
) -> web.StreamResponse:
    """Return the answer to a request, whatever comes of it."""
    try:
        shown = request.headers.get("Authorization", "")
        user = (await door.admit(shown, request.remote or "")).user
        request[USER] = user
        with door.gate.within(user.name):
            return await handler(request)
    except HttpError as error:
        return _refused(error)
    except MoorageError as error:
        return _refused(refusal(error))
    except TimeoutError:
        return _refused(HttpError(504))
    except web.HTTPException as error:
        return _refused(_as_ganeti(error, request))
    except Exception:  # noqa: BLE001 - a defect of ours ends no door
        _LOG.exception("a request broke: %s %s", request.method, _written(request))
        return _refused(HttpError(500))


def _as_ganeti(error: web.HTTPException, request: web.Request) -> HttpError:
    if error.status == 405:
        return HttpError(
            501, f"Method {request.method} is unsupported for path {request.path}"
        )
    return HttpError(error.status if error.status in (404, 413) else 400)


def _serving(door: Door, route: Route) -> Handler:
    """Return what answers the requests for a route."""

    async def serve(request: web.Request) -> web.StreamResponse:
        user: User = request[USER]
        route.check(user)
        query = {name: request.query.getall(name) for name in request.query}
        args = route.read(query)
        with door.gate.holding() as hold:
            body = await _body(door.gate.limits, request, user, hold)
            luxi = door.luxi.of(caller(user, request))
            asked = Asked(luxi, request.match_info, args, body, route.resource)
            asked.key = request.headers.get("Idempotency-Key", "")
            asked.gate, asked.survival = door.gate, door.survival
            request[MADE] = asked.made
            if isinstance(route.serve, Events):
                after = heard(asked, request.headers.get("Last-Event-ID"))
                wanted = await route.serve(asked)
                return await _stream(door, route, request, after, wanted)
            async with asyncio.timeout(door.gate.limits.answer):
                answer = await route.serve(asked)
        if route.serve.media != _JSON:
            headers = {"Content-Type": route.serve.media}
            return web.Response(body=str(answer).encode(), headers=headers)
        return await _answered(answer)

    return serve


async def _stream(
    door: Door, route: Route, request: web.Request, after: int | None, wanted: Wanted
) -> web.StreamResponse:
    """Tell somebody what happens, as long as he listens, and may."""
    shown = request.headers.get("Authorization", "")
    await door.hub.ready()
    answer = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            REQUEST_ID: request[_ID],
        }
    )
    try:
        await answer.prepare(request)
        async for told in door.hub.after(after):
            user = await door.users.who(shown)
            if user is None or user.role < route.role:
                break  # he was taken out, or his token has ended
            async with asyncio.timeout(_WRITE):
                await answer.write(b"".join(blocks(told, wanted)))
    except (ConnectionError, TimeoutError, MoorageError):
        pass  # he went away or reads too slowly, or the master went away
    return answer


def caller(user: User, request: web.Request) -> dict[str, Any]:
    """Return what the master is told of who asks."""
    name = user.name or "nobody"
    return {
        "name": name,
        "role": int(user.role),
        "detail": f"from {request.remote}",
        "request": request[_ID],
    }


async def _body(
    limits: Limits, request: web.Request, user: User, hold: Callable[[int], None]
) -> Any:  # noqa: ANN401
    """Return what came as JSON; None if nothing did.

    Raises
    ------
    HttpError
        If it is no JSON, too long, or takes too long to come.
    """
    if not request.body_exists:
        return None
    most = limits.body if user.role >= Role.WRITE else limits.question
    text = await arrived(limits, request, most, hold)
    if not text.strip():
        return None
    if request.content_type != _JSON or request.headers.get("Content-Encoding"):
        raise HttpError(415)  # nothing is unpacked: a little could become much
    try:
        return json.decode(text)
    except (DecodeError, UnicodeError, RecursionError) as error:
        raise HttpError(400, f"Unable to parse the body: {error}") from None


async def arrived(
    limits: Limits, request: web.Request, most: int, hold: Callable[[int], None]
) -> bytes:
    """Return a body, once it is here.

    Parameters
    ----------
    most
        Bytes that it may have.
    hold
        Counts bytes that came; it raises an error if all that is under way is too much.

    Raises
    ------
    HttpError
        If it is too long, or takes too long to come.
    """
    found = bytearray()
    try:
        async with asyncio.timeout(limits.arrival):
            async for piece in request.content.iter_any():
                hold(len(piece))
                found += piece
                if len(found) > most:
                    raise HttpError(413)
    except TimeoutError:
        raise HttpError(408) from None
    except (web.RequestPayloadError, ConnectionError) as error:
        raise HttpError(400, f"The body broke off: {error}") from None
    return bytes(found)


async def _answered(answer: Any) -> web.Response:  # noqa: ANN401
    if isinstance(answer, list) and len(answer) >= _LONG:
        text = await asyncio.to_thread(json.encode, answer)
    else:
        text = json.encode(answer)
    return web.Response(body=text, content_type=_JSON)


def _refused(error: HttpError) -> web.Response:
    headers = {"WWW-Authenticate": f'Basic realm="{REALM}"'}
    return web.Response(
        status=error.status,
        body=json.encode(error.body()),
        content_type=_JSON,
        headers=headers if error.status == 401 else None,
    )


def _written(request: web.Request) -> str:
    """Return the path as it came: decoded, it could begin a line of its own."""
    return request.rel_url.raw_path


def _log(request: web.Request, status: int, took: float) -> None:
    """Write who asked for what; of strangers, no more than the log can bear."""
    user: User | None = request.get(USER)
    made: list[int] = request.get(MADE, [])
    told = {
        "status": status,
        "method": request.method,
        "path": _written(request),
        "user": user.name if user else "nobody",
        "address": request.remote,
        "jobs": made,
        "seconds": round(took, 6),
        "request": request[_ID],
    }
    _LOG.info(
        "%s %s %s by %s from %s%s in %.0f ms, request %s",
        *(status, request.method, told["path"], told["user"], request.remote),
        f", job {', '.join(map(str, made))}" if made else "",
        took * 1000,
        request[_ID],
        extra={"told": told, **(ALWAYS if user else {})},
    )
