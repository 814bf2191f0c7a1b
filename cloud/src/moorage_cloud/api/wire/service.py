# SPDX-License-Identifier: BSD-2-Clause
"""A service on the wire: from a request to its view, and back with what clients expect.

In this order: the version, the path, the token, the project, the body, the rule.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

import msgspec
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from microversion_parse import Version
from msgspec import Struct

from moorage_cloud import tracing
from moorage_cloud.errors import (
    BadRequest,
    Forbidden,
    OverLimit,
    Refusal,
    Unavailable,
)
from moorage_cloud.identity.tokens import InvalidToken
from moorage_cloud.identity.who import NOBODY, Identity, known_by
from moorage_cloud.tracing import Trace

from .address import address
from .bodies import check_storable, decoded, read, read_query, written
from .call import Call
from .errors import TooLarge, Unauthorized
from .routes import Endpoint, Routes
from .versions import HEADER, asked, version

_LOG = logging.getLogger(__name__)
MAX_BODY = 114688
"""Bytes of a request's body, at most: as services of OpenStack have it."""
_PROJECT = re.compile("[0-9a-f]{32}|[0-9a-f-]{36}")


class Service(Struct, frozen=True, kw_only=True):
    """A service and its routes.

    Attributes
    ----------
    name
        What the header of versions calls it; empty for a service without versions.
    root
        Where it is, such as ``volume/v3``.
    low, high
        The versions that it speaks.
    legacy
        An older header that says the version alone.
    projects
        Whether its things are a project's, whose id may stand in the path.
    words
        How an error's body looks.
    """

    name: str
    root: str
    routes: Routes
    low: str = "1.0"
    high: str = "1.0"
    legacy: str = ""
    projects: bool = True
    words: Callable[[int, str, str], dict[str, object]]

    def serve(self, request: HttpRequest, path: str = "") -> HttpResponse:
        """Answer a request; it never raises."""
        trace = tracing.current()
        spoken = version(self.low)
        try:
            _check_host(request)
            spoken = self._asked(request)
            response = self._answer(request, path.strip("/"), trace, spoken)
        except Refusal as refusal:
            response = self._refused(request, refusal)
        except (OperationalError, InterfaceError):
            _LOG.exception("the database does not answer")
            away = Unavailable("The database does not answer.")
            response = self._refused(request, away)
        except Exception:  # noqa: BLE001 - an answer tells of it, and the log
            _LOG.exception("%s %s", request.method, request.path)
            body = self.words(
                500,
                "computeFault",
                "The server met an error that it did not expect; its log has "
                f"{trace.id}.",
            )
            response = _json(500, body)
        self._sign(response, trace.id, spoken)
        return response

    def _asked(self, request: HttpRequest) -> Version:
        low, high = version(self.low), version(self.high)
        if not self.name:
            return low
        return asked(
            {key.lower(): value for key, value in request.headers.items()},
            self.name,
            self.legacy,
            low,
            high,
        )

    def _answer(
        self, request: HttpRequest, path: str, trace: Trace, spoken: Version
    ) -> HttpResponse:
        check_storable([path, *request.GET.keys(), *request.GET.values()])
        path, project = self._project(path)
        endpoints, names = self.routes.match(path, request.method or "GET", spoken)
        trace.route = f"/{self.root}{endpoints[0].path}"
        endpoint, given = _chosen(endpoints, request)
        identity = NOBODY if endpoint.open else _identity(request)
        trace.user, trace.project = identity.user_id, identity.project_id
        if self.projects and not endpoint.open:
            _check_project(identity, project)
        call = Call(
            request=request,
            trace=trace,
            version=spoken,
            base=address(request, f"/{self.root}"),
            rule=endpoint.rule,
            identity=identity,
            status=endpoint.status,
        )
        if endpoint.rule:
            call.check(endpoint.rule)
        arguments: dict[str, object] = dict(names)
        if endpoint.query:
            query = {key: values[-1] for key, values in request.GET.lists()}
            strict = not call.who.admin
            arguments["query"] = read_query(
                query, endpoint.query, spoken, strict=strict
            )
        if endpoint.body:
            arguments["body"] = read(given, endpoint.body, spoken)
        answer = endpoint.view(call, **arguments)
        if answer is None:
            response = _empty(call.status)
        else:
            response = _json(
                call.status,
                answer if isinstance(answer, dict) else written(answer, spoken),
            )
        for key, value in call.headers.items():
            response[key] = value
        return response

    def _project(self, path: str) -> tuple[str, str]:
        """Return a path without the project that it begins with, and that project."""
        first, _, rest = path.partition("/")
        if self.projects and _PROJECT.fullmatch(first):
            return rest, first
        return path, ""

    def _refused(self, request: HttpRequest, refusal: Refusal) -> HttpResponse:
        response = _json(
            refusal.code, self.words(refusal.code, refusal.name, refusal.sentence)
        )
        if isinstance(refusal, OverLimit):
            response["Retry-After"] = "0"
        if isinstance(refusal, Unauthorized):
            uri = address(request, "/identity")
            response["WWW-Authenticate"] = f'Keystone uri="{uri}"'
        return response

    def _sign(self, response: HttpResponse, request_id: str, spoken: Version) -> None:
        response["Content-Length"] = str(len(response.content))
        if not self.name:
            return
        response["x-compute-request-id"] = request_id
        response[HEADER] = f"{self.name} {spoken}"
        response["Vary"] = HEADER
        if self.legacy:
            response[self.legacy] = str(spoken)
            response["Vary"] = f"{HEADER}, {self.legacy}"


def _chosen(
    endpoints: Sequence[Endpoint], request: HttpRequest
) -> tuple[Endpoint, object]:
    """Return who answers, and what the body says to it."""
    endpoint = endpoints[0]
    if endpoint.body is None and not endpoint.action:
        return endpoint, None
    if _length(request) > MAX_BODY:
        raise TooLarge("Request is too large.")
    given = decoded(request.body)
    if not endpoint.action:
        return endpoint, given
    if not isinstance(given, dict) or len(given) != 1:
        raise BadRequest("Malformed request body: it names one action")
    ((action, inner),) = given.items()
    for one in endpoints:
        if one.action == action:
            return one, {} if inner is None else inner
    raise BadRequest(f"There is no such action: {action}")


def _length(request: HttpRequest) -> int:
    """Return how long a body is said to be."""
    told = request.headers.get("Content-Length") or "0"
    if not (told.isascii() and told.isdecimal()):
        raise BadRequest("Malformed request: its Content-Length is no number")
    return int(told)


def _check_host(request: HttpRequest) -> None:
    """Refuse a name that is none, or not ours: links begin with it."""
    try:
        request.get_host()
    except DisallowedHost:
        raise BadRequest("Malformed request: its Host is no name of ours") from None


def _identity(request: HttpRequest) -> Identity:
    token = request.headers.get("X-Auth-Token", "")
    try:
        return known_by(token)
    except InvalidToken as error:
        raise Unauthorized(str(error)) from None


def _check_project(identity: Identity, project: str) -> None:
    """Refuse a token for no project, and a path of another one."""
    if not identity.project_id:
        raise Forbidden("The token is for no project: ask for one with a scope.")
    if project and project.replace("-", "") != identity.project_id:
        raise BadRequest("Malformed request url")


def _empty(status: int) -> HttpResponse:
    return HttpResponse(status=status, content_type="application/json")


def _json(status: int, body: Mapping[str, object]) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(body), status=status, content_type="application/json"
    )


def named(code: int, name: str, sentence: str) -> dict[str, object]:
    """Return an error's body as Cinder and Nova have it."""
    inner: dict[str, object] = {"code": code, "message": sentence}
    if name == OverLimit.name:
        inner["retryAfter"] = "0"
    if code == Unauthorized.code:
        return titled(code, name, sentence)
    return {name: inner}


def titled(code: int, _name: str, sentence: str) -> dict[str, object]:
    """Return an error's body as Keystone has it."""
    title = HTTPStatus(code).phrase
    return {"error": {"code": code, "title": title, "message": sentence}}
