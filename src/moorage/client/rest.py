# SPDX-License-Identifier: BSD-2-Clause
"""How requests are said over HTTPS, and what answers mean: RAPI's resources, as text.

Whoever sends them is told how in `Http`, and reads the answer with :func:`result`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from moorage.api.wanted import Wanted
from moorage.errors import (
    BadInput,
    Conflict,
    Failed,
    Forbidden,
    MoorageError,
    NotFound,
    NotSupported,
    Unreachable,
    WrongState,
    from_json,
)


class Http(NamedTuple):
    """A request over HTTPS.

    Attributes
    ----------
    path
        With what stands behind the question mark.
    body
        JSON values; None for no body.
    key
        The request's own name, if it may come twice.
    """

    method: str
    path: str
    body: Any = None
    key: str = ""

    def headers(self) -> dict[str, str]:
        """Return what goes before the body."""
        told = {"Accept": "application/json"}
        if self.body is not None:
            told["Content-Type"] = "application/json"
        if self.key:
            told["Idempotency-Key"] = self.key
        return told

    def content(self) -> bytes | None:
        """Return the body as it is sent."""
        return None if self.body is None else json.dumps(self.body).encode()


def _part(text: object) -> str:
    return quote(str(text), safe="")


def _asking(**args: object) -> str:
    """Return what stands behind a path, of the arguments that are given."""
    given = {name: value for name, value in args.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _words(words: Sequence[object] | None) -> str | None:
    return None if words is None else ",".join(map(str, words))


def _query(what: str, fields: list[str], qfilter: list[Any] | None) -> Http:
    body = {"fields": fields, "qfilter": qfilter}
    return Http("PUT", f"/2/query/{_part(what)}", body)


def _query_fields(what: str, fields: list[str] | None) -> Http:
    asking = _asking(fields=_words(fields))
    return Http("GET", f"/2/query/{_part(what)}/fields{asking}")


def _query_jobs(jobs: list[int] | None, fields: list[str]) -> Http:
    asking = _asking(fields=_words(fields), id=_words(jobs))
    return Http("GET", f"/2/jobs{asking}")


def _submit(key: str, ops: list[dict[str, Any]]) -> Http:
    return Http("POST", "/2/jobs", {"ops": ops}, key)


_REQUESTS: Mapping[str, Callable[..., Http]] = {
    "Features": lambda: Http("GET", "/2/features"),
    "Query": _query,
    "QueryClusterInfo": lambda: Http("GET", "/2/info"),
    "QueryFields": _query_fields,
    "QueryJobs": _query_jobs,
    "SubmitJobOnce": _submit,
}
"""Methods of LUXI as resources."""


def request(method: str, args: Sequence[Any]) -> Http:
    """Return a method of LUXI as a request over HTTPS.

    Raises
    ------
    NotSupported
        If there is no resource that does the same.
    """
    if method not in _REQUESTS:
        raise NotSupported(f"{method} works on the master's machine alone")
    return _REQUESTS[method](*args)


def events(after: int | None, wanted: Wanted) -> Http:
    """Return the request for what happens behind an entry."""
    words = {"kind": wanted.kinds, "job": wanted.jobs, "tag": wanted.tags}
    many = {name: sorted(map(str, values)) for name, values in words.items() if values}
    asked = many if after is None else {"after": [str(after)], **many}
    return Http("GET", f"/2/events?{urlencode(asked, doseq=True)}")


_KINDS: Mapping[int, type[MoorageError]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: WrongState,
    501: NotSupported,
    503: WrongState,
}
"""What the door's own refusals are; those of the master say it themselves."""


def result(status: int, text: bytes) -> Any:  # noqa: ANN401
    """Return what an answer holds.

    Raises
    ------
    MoorageError
        The one that the master raised, or what the door refuses.
    Unreachable
        If it is no answer of a door's.
    """
    try:
        told = json.loads(text)
    except ValueError as error:
        raise Unreachable(
            f"what came is no answer of RAPI: status {status}, {error}"
        ) from error
    if status == 200:
        return told
    raise _refused(status, told if isinstance(told, dict) else {})


def _refused(status: int, told: Mapping[str, Any]) -> MoorageError:
    error = told.get("error")
    if isinstance(error, dict):
        return from_json(error)
    why = str(told.get("explain") or told.get("message") or f"status {status}")
    if status in (502, 504):
        return Unreachable(f"the master gave no answer: {why}", lost="master")
    if status in _KINDS:
        return _KINDS[status](why, status=status)
    return (BadInput if status < 500 else Failed)(why, status=status)


def is_lost(error: MoorageError) -> bool:
    """Whether an answer is lost, or the one who could give it: asking again may help.

    What a node's silence did to a job, or to a field, is an answer.
    """
    return error.code == "no-master" or bool(error.facts.get("lost"))
