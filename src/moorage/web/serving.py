# SPDX-License-Identifier: BSD-2-Clause
"""Pages over HTTPS: who has signed in, forms that only our own pages can send, headers.

The door's process serves them. Whoever has signed in asks the door's resources in his
own name; what he may, these and the master say.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from hmac import compare_digest
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, quote

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import json

from moorage.api.rapi.application import MADE, USER, Door, arrived, caller
from moorage.api.rapi.inside import Inside
from moorage.api.rapi.refusals import HttpError, refusal
from moorage.api.rapi.roles import User
from moorage.client import MoorageError
from moorage.client.aio import AsyncClient
from moorage.jobs.fields import fields
from moorage.jobs.words import about
from moorage.ops import OPERATIONS

from . import consoles, drawn, forms, jobs, objects, overview, tables, words
from .answers import HEADERS, after, goes, html
from .drawn.planner import Planner
from .kinds import KINDS
from .live import stream, strip
from .rendering import asset
from .rooms import Rooms
from .sessions import Session, Sessions
from .shared import Shared
from .signing import authorization, came_from_here
from .values import ROOT
from .visit import Elsewhere, Page, Visit, Wish
from .way import InsideWay

_LOG = logging.getLogger(__name__)
COOKIE: Final = "__Host-moorage"
"""The prefix has browsers take it over HTTPS alone, for this host alone."""
_FORM: Final = 64 * 1024
"""Bytes of a form."""
_FIELDS: Final = 1000
Shows: TypeAlias = Callable[[Visit], Awaitable[Page | Elsewhere]]


class WebPages:
    """All pages of a door; as :class:`~moorage.api.rapi.application.Pages`.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    """

    root = ROOT

    def __init__(self, door: Door, clock: Callable[[], float] = time.monotonic) -> None:
        self._door = door
        self.sessions = Sessions(door.users.still, clock)
        self._shared = Shared(clock, lambda: door.hub.newest)
        self._consoles = consoles.Consoles()
        self._planner = Planner()
        draw, run = drawn.pages(self._planner)
        kinds = "|".join(KINDS)
        kind = f"{ROOT}/{{kind:{kinds}}}"
        deed = f"{ROOT}/do/{{kind:{kinds}}}/{{deed}}"
        self.routes: Sequence[tuple[str, str, Handler]] = (
            ("GET", ROOT, self._shows(partial(overview.overview, Rooms(clock)))),
            *(("GET", f"{ROOT}/{end}", self._shows(one)) for end, one in draw.items()),
            *(("POST", f"{ROOT}/{end}", self._takes(one)) for end, one in run.items()),
            ("GET", f"{ROOT}/static/{{file:.+}}", self._asset),
            ("GET", f"{ROOT}/sign-in", self._sign_in),
            ("POST", f"{ROOT}/sign-in", self._signed_in),
            ("POST", f"{ROOT}/sign-out", self._signed_out),
            ("GET", f"{ROOT}/events", self._events),
            ("GET", f"{ROOT}/strip", self._strip),
            ("GET", f"{ROOT}/words/{{kind:{kinds}}}", self._words),
            ("GET", f"{ROOT}/job/{{name}}", self._shows(jobs.shown)),
            ("POST", f"{ROOT}/job/{{name}}", self._takes(jobs.changed)),
            *self._lines(),
            ("GET", kind, self._shows(tables.table)),
            ("GET", f"{kind}/{{name}}", self._shows(objects.shown)),
            ("GET", f"{ROOT}/do/{{kind:{kinds}}}", self._shows(forms.chosen)),
            ("GET", deed, self._shows(forms.form)),
            ("POST", deed, self._takes(forms.answered)),
        )

    def _lines(self) -> Iterator[tuple[str, str, Handler]]:
        for one in consoles.LINES:
            path = f"{ROOT}/{one.deed.word}/{{name}}"
            yield "GET", path, self._shows(partial(consoles.shown, one))
            yield "GET", f"{path}/line", partial(self._line, one)

    async def close(self) -> None:
        """Hang up on all who are at a guest, and plan no more."""
        self._planner.close()
        await self._consoles.close()

    async def enter(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Return the answer to a request, whatever comes of it."""
        try:
            answer = await handler(request)
        except HttpError as error:
            answer = self._wrong(request, error)
        except MoorageError as error:
            answer = self._wrong(request, refusal(error))
        except web.HTTPException as error:
            known = error.status if error.status in (404, 405, 413) else 400
            answer = self._wrong(request, HttpError(known, error.reason))
        except TimeoutError:
            answer = self._wrong(request, HttpError(504))
        except Exception:  # noqa: BLE001 - a defect of ours ends no door
            _LOG.exception("a page broke: %s", request.rel_url.raw_path)
            answer = self._wrong(request, HttpError(500))
        if not answer.prepared:
            for name, value in HEADERS.items():
                answer.headers.setdefault(name, value)
            answer.headers.setdefault("Cache-Control", "no-store")
        return answer

    def _wrong(self, request: web.Request, error: HttpError) -> web.Response:
        """Return a page that says what is wrong."""
        known = self._known(request, counts=False)  # who opened it was counted before
        values = {"error": error.error, "explain": error.explain, "at": error.status}
        return html(
            Page("wrong", values, error.status), **_who(*known) if known else {}
        )

    # -- signing in --------------------------------------------------------------------

    def _known(
        self, request: web.Request, *, counts: bool = True
    ) -> tuple[Session, User] | None:
        cookie = request.cookies.get(COOKIE, "")
        return self.sessions.find(cookie, counts=counts) if cookie else None

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        if self._known(request):
            return goes(after(request.query.get("next", "")))
        values = {"next": request.query.get("next", ""), "wrong": ""}
        return html(Page("sign-in", values))

    async def _signed_in(self, request: web.Request) -> web.StreamResponse:
        came_from_here(request)
        form = await self._form(request)
        filled = {name: values[0] for name, values in form.items()}
        leads = filled.get("next", "")
        try:
            shown = authorization(filled)
            line = await self._door.admit(shown, request.remote or "")
        except HttpError as error:
            wrong = {401: "Nobody is known by this name with this password."}
            told = wrong.get(error.status, error.explain)
            values = {"next": leads, "wrong": told, "name": filled.get("name", "")}
            return html(Page("sign-in", values, error.status))
        request[USER] = line.user
        self.sessions.end(request.cookies.get(COOKIE, ""))
        answer = goes(after(leads))
        answer.set_cookie(
            COOKIE,
            self.sessions.begin(line),
            path="/",
            secure=True,
            httponly=True,
            samesite="Strict",
        )
        return answer

    async def _signed_out(self, request: web.Request) -> web.StreamResponse:
        found = self._known(request)
        if found:
            await self._own_form(request, found[0])
        self.sessions.end(request.cookies.get(COOKIE, ""))
        answer = goes(f"{ROOT}/sign-in")
        answer.del_cookie(
            COOKIE, path="/", secure=True, httponly=True, samesite="Strict"
        )
        return answer

    # -- pages -------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Tell a browser what changes; to listen is no use of a session."""
        session, user = self._present(request)
        _, inside = self._visit(request, session, user, {})
        if refused := inside.refused("GET", "/2/events"):
            raise HttpError(403, refused)
        await self._door.hub.ready()
        way = self._way(request, inside)

        def still() -> bool:
            return self._may_as_before(request, user, counts=False)

        # Pages that are open keep nobody from asking.
        with self._door.gate.within(f"{user.name}, listening,"):
            return await stream(request, way, HEADERS, still)

    async def _strip(self, request: web.Request) -> web.StreamResponse:
        """Show the jobs that run, for the bottom of a page."""
        session, user = self._present(request)
        visit, _ = self._visit(request, session, user, {})
        with self._door.gate.within(user.name):
            values = await strip(visit.client)
        return html(Page("strip", values))

    async def _line(
        self, kind: consoles.Kind, request: web.Request
    ) -> web.StreamResponse:
        """Carry a line to a guest, for a script of our own pages."""
        came_from_here(request)
        session, user = self._present(request)
        shown = request.headers.get("Sec-WebSocket-Protocol", "").split(",")[-1]
        said = shown.strip().encode(errors="replace")  # a header may be any bytes
        if not compare_digest(said, session.secret.encode()):
            raise HttpError(403, "This is not of a page of yours: open it again.")
        _, inside = self._visit(request, session, user, {})

        def still(doing: bool) -> bool:
            return self._may_as_before(request, user, counts=doing)

        with self._door.gate.within(f"{user.name}, at guests,"):
            return await self._consoles.serve(request, kind, inside.line, still)

    async def _words(self, request: web.Request) -> web.StreamResponse:
        """Say how a filter may go on."""
        session, user = self._present(request)
        visit, _ = self._visit(request, session, user, {})
        with self._door.gate.within(user.name):
            found = await words.offered(visit)
        return web.json_response(found, dumps=lambda one: json.encode(one).decode())

    def _may_as_before(self, request: web.Request, user: User, *, counts: bool) -> bool:
        """Whether somebody is signed in still, and may no less than when he came."""
        found = self._known(request, counts=counts)
        return found is not None and found[1].role >= user.role

    def _present(self, request: web.Request) -> tuple[Session, User]:
        """Return who has signed in, for what a script asks unasked."""
        found = self._known(request, counts=False)
        if found is None:
            raise HttpError(401, "You are signed out.")
        request[USER] = found[1]
        return found

    def _shows(self, page: Shows) -> Handler:
        """Return what answers a request that only looks."""

        async def shows(request: web.Request) -> web.StreamResponse:
            # What a page's script fetches unasked is no use of a session.
            found = self._known(request, counts=_is_opened(request))
            if found is None:
                here = quote(request.rel_url.raw_path_qs, safe="")
                return goes(f"{ROOT}/sign-in?next={here}")
            return await self._answer(request, found, page, {})

        return shows

    def _takes(self, page: Shows) -> Handler:
        """Return what answers a form."""

        async def takes(request: web.Request) -> web.StreamResponse:
            found = self._known(request)
            if found is None:
                raise HttpError(401, "You are signed out: nothing was done.")
            form = await self._own_form(request, found[0])
            return await self._answer(request, found, page, form)

        return takes

    async def _answer(
        self,
        request: web.Request,
        found: tuple[Session, User],
        page: Shows,
        form: Mapping[str, Sequence[str]],
    ) -> web.StreamResponse:
        session, user = found
        request[USER] = user
        visit, inside = self._visit(request, session, user, form)
        request[MADE] = inside.made
        with self._door.gate.within(user.name):
            told = await page(visit)
        if isinstance(told, Elsewhere):
            return goes(told.address)
        return await asyncio.to_thread(html, told, **_who(session, user))

    def _visit(
        self,
        request: web.Request,
        session: Session,
        user: User,
        form: Mapping[str, Sequence[str]],
    ) -> tuple[Visit, Inside]:
        luxi = self._door.luxi.of(caller(user, request))
        inside = Inside(self._door, user, luxi)
        client = AsyncClient(self._way(request, inside), patience=0.0)
        query = {name: request.query.getall(name) for name in request.query}
        visit = Visit(
            client,
            user.name,
            user.role.word,
            session.secret,
            partial(wish, user),
            inside.refused,
            dict(request.match_info),
            query,
            form,
        )
        return visit, inside

    def _way(self, request: web.Request, inside: Inside) -> InsideWay:
        """Return the way of a request; what a script fetches may be a moment old."""
        anew = _is_opened(request)
        return InsideWay(inside, self._door.hub, self._shared, anew=anew)

    async def _own_form(
        self, request: web.Request, session: Session
    ) -> dict[str, list[str]]:
        """Return a form's fields.

        Raises
        ------
        HttpError
            If it is no form of one of this session's pages.
        """
        came_from_here(request)
        form = await self._form(request)
        (secret,) = form.pop("secret", [""])[:1]
        if not compare_digest(secret.encode(), session.secret.encode()):
            raise HttpError(403, "This form is not of a page of yours: open it again.")
        return form

    async def _form(self, request: web.Request) -> dict[str, list[str]]:
        if request.content_type != "application/x-www-form-urlencoded":
            raise HttpError(415, "A form has another type.")
        limits = self._door.gate.limits
        with self._door.gate.holding() as hold:
            text = await arrived(limits, request, min(_FORM, limits.body), hold)
        try:
            return parse_qs(
                text.decode(), keep_blank_values=True, max_num_fields=_FIELDS
            )
        except ValueError as error:
            raise HttpError(400, f"The form cannot be read: {error}") from None

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        """Serve the stylesheet, the script and the picture: they hold no secret."""
        name = request.match_info["file"]
        found = asset(name)
        if found is None:
            raise HttpError(404)
        # What is asked for without its tag or version may be another one tomorrow.
        lasts = request.query_string or "/" in name
        kept = {"Cache-Control": "public, max-age=3600" if lasts else "no-cache"}
        kept["ETag"] = found.tag
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=kept)
        return web.Response(
            body=found.content, content_type=found.type, charset="utf-8", headers=kept
        )


def _is_opened(request: web.Request) -> bool:
    """Whether somebody asks, and no script that keeps a page live."""
    return request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"


def _who(session: Session, user: User) -> dict[str, str]:
    """Return what a page is told of who has signed in."""
    return {"user": user.name, "role": user.role.word, "secret": session.secret}


def wish(user: User, op: str) -> Wish:
    """Return what the door knows of an operation, and whether somebody may ask for it.

    Parameters
    ----------
    op
        Its ``OP_ID``.
    """
    role = OPERATIONS[op].role
    told = f"Your role is {user.role.word}: this takes {role.word}."
    return Wish(*_declared(op), "" if user.role >= role else told)


@cache
def _declared(op: str) -> tuple[dict[str, Any], str]:
    kind = OPERATIONS[op]
    return {one.name: one for one in fields(kind)}, about(kind)
