# SPDX-License-Identifier: BSD-2-Clause
"""How requests are said over HTTPS, and what answers mean: RAPI's resources, as text.

Whoever sends them is told how in `Http`, and reads the answer with :func:`result`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from moorage.api.luxi import NOCHANGE
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


def _change(
    job: int,
    fields: list[str],
    seen: list[Any] | None,
    serial: int | None,
    timeout: float,
) -> Http:
    body = {"fields": fields, "previous_job_info": seen, "timeout": timeout}
    body["previous_log_serial"] = serial
    return Http("GET", f"/2/jobs/{job}/wait", body)


def _priority(job: int, priority: int) -> Http:
    return Http("PUT", f"/2/jobs/{job}/priority", {"priority": priority})


_TAGGED = {
    "cluster": "/2",
    "disk": "/2/disks",
    "group": "/2/groups",
    "instance": "/2/instances",
    "network": "/2/networks",
    "node": "/2/nodes",
    "nodegroup": "/2/groups",
    "pool": "/2/storage/pools",
}
"""What has tags, and where that is."""


def _tags(kind: str, name: str = "") -> Http:
    if kind not in _TAGGED:
        known = ", ".join(sorted(_TAGGED))
        raise BadInput(f"no '{kind}' has tags: there is {known}")
    path = _TAGGED[kind] + (f"/{_part(name)}" if name else "")
    return Http("GET", f"{path}/tags")


def _setting(fields: list[str]) -> Http:
    (name,) = fields
    return Http("GET", {"drain_flag": "/2/queue", "watcher_pause": "/2/watcher"}[name])


class _Resource(NamedTuple):
    """How a method of LUXI is said, and how what comes is read as its answer.

    Attributes
    ----------
    decode
        Makes values of the text that came.
    """

    say: Callable[..., Http]
    read: Callable[[Any], Any] = lambda answer: answer
    decode: Callable[[bytes], Any] = json.loads


_RESOURCES: Mapping[str, _Resource] = {
    "ArchiveJob": _Resource(lambda job: Http("POST", f"/2/jobs/{job}/archive")),
    "AutoArchiveJobs": _Resource(
        lambda age: Http("POST", "/2/jobs/archive", {"age": age})
    ),
    "CancelJob": _Resource(
        lambda job, kill: Http("DELETE", f"/2/jobs/{job}?kill={kill:d}")
    ),
    "ChangeJobPriority": _Resource(_priority),
    "Features": _Resource(lambda: Http("GET", "/2/features")),
    "Query": _Resource(_query),
    "QueryAudit": _Resource(
        lambda after: Http("GET", f"/2/audit?after={after}"),
        lambda told: {"lines": told},
        lambda text: text.decode().splitlines(),
    ),
    "QueryClusterInfo": _Resource(lambda: Http("GET", "/2/info")),
    "QueryConfigValues": _Resource(_setting, lambda told: list(told.values())),
    "QueryDiskStory": _Resource(
        lambda disk: Http("GET", f"/2/disks/{_part(disk)}/story")
    ),
    "QueryFields": _Resource(_query_fields),
    "QueryJobs": _Resource(_query_jobs),
    "QueryStore": _Resource(lambda: Http("GET", "/2/store")),
    "QueryTags": _Resource(_tags),
    "SetDrainFlag": _Resource(
        lambda drained: Http("PUT", "/2/queue", {"drained": drained})
    ),
    "SetWatcherPause": _Resource(
        lambda until: Http("PUT", "/2/watcher", {"paused_until": until}),
        lambda told: told["paused_until"],
    ),
    "SubmitJobOnce": _Resource(_submit),
    "WaitForJobChange": _Resource(
        _change,
        lambda told: [told["job_info"], told["log_entries"]] if told else NOCHANGE,
    ),
}
"""Methods of LUXI as resources."""


def request(method: str, args: Sequence[Any]) -> Http:
    """Return a method of LUXI as a request over HTTPS.

    Raises
    ------
    NotSupported
        If there is no resource that does the same.
    """
    if method not in _RESOURCES:
        raise NotSupported(f"{method} works on the master's machine alone")
    return _RESOURCES[method].say(*args)


def answer(method: str, status: int, text: bytes) -> Any:  # noqa: ANN401
    """Return the result of a method; raise as :func:`result` does."""
    return read(method, result(status, text, _RESOURCES[method].decode))


def read(method: str, told: Any) -> Any:  # noqa: ANN401
    """Return the result of a method, of what its resource tells.

    Raises
    ------
    Unreachable
        If that is something else.
    """
    try:
        return _RESOURCES[method].read(told)
    except (TypeError, KeyError, AttributeError) as error:
        raise Unreachable(f"what came is no answer to {method}: {error!r}") from error


def events(after: int | None, wanted: Wanted) -> Http:
    """Return the request for what happens behind an entry."""
    words = {"kind": wanted.kinds, "job": wanted.jobs, "tag": wanted.tags}
    many = {name: sorted(map(str, values)) for name, values in words.items() if values}
    asked = many if after is None else {"after": [str(after)], **many}
    return Http("GET", f"/2/events?{urlencode(asked, doseq=True)}")


_KINDS: Mapping[int, type[MoorageError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: WrongState,
    501: NotSupported,
    503: WrongState,
}
"""What the door's own refusals are; those of the master say it themselves."""


_BETWEEN = (502, 503, 504)
"""What somebody between here and the door says who does not reach it."""


def result(
    status: int, text: bytes, decode: Callable[[bytes], Any] = json.loads
) -> Any:  # noqa: ANN401
    """Return what an answer holds.

    Raises
    ------
    MoorageError
        The one that the master raised, or what the door refuses.
    Unreachable
        If it is no answer of a door's.
    """
    try:
        told = (decode if status == 200 else json.loads)(text)
    except ValueError as error:
        between = {"lost": "door"} if status in _BETWEEN else {}
        raise Unreachable(
            f"what came is no answer of RAPI: status {status}, {error}", **between
        ) from error
    if status == 200:
        return told
    raise _refused(status, told if isinstance(told, dict) else {})


def _refused(status: int, told: Mapping[str, Any]) -> MoorageError:
    error = told.get("error")
    if isinstance(error, dict):
        return from_json(error)
    if status == 401:
        return Forbidden(
            "the door does not know this token, or this user with this password",
            hint="a token ends by itself: moorage rapi list-tokens, where the door is",
            status=status,
        )
    why = str(told.get("explain") or told.get("message") or f"status {status}")
    if status in (502, 504):
        return Unreachable(f"the master gave no answer: {why}", lost="master")
    if status in _KINDS:
        return _KINDS[status](why, status=status)
    return (BadInput if status < 500 else Failed)(why, status=status)
