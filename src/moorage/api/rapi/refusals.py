# SPDX-License-Identifier: BSD-2-Clause
"""Answers that are no success: Ganeti's statuses, and its body of three keys."""

from http import HTTPStatus

from moorage.api.luxi import NoMaster
from moorage.errors import (
    Conflict,
    Failed,
    Forbidden,
    MoorageError,
    NotFound,
    WrongState,
)

_EXPLAINED = {
    400: "Bad request syntax or unsupported method",
    401: "No permission -- see authorization schemes",
    403: "Request forbidden -- authorization will not help",
    404: "Nothing matches the given URI",
    409: "The request does not fit what is there",
    408: "The request took too long to arrive",
    413: "The body is too long",
    415: "The body is not JSON as it is: no other type, and not compressed",
    429: "Too many requests; try again later",
    500: "Server got itself in trouble",
    501: "Server does not support this operation",
    502: "Invalid responses from another server/proxy",
    503: "The server cannot process the request due to a high load",
    504: "The gateway server did not receive a timely response",
}
"""What a status means when nothing more is known."""


class HttpError(Exception):
    """A request that is answered with a status other than 200.

    Parameters
    ----------
    status
        As of HTTP.
    explain
        Why, in a sentence; that of the status when it is empty.
    """

    def __init__(self, status: int, explain: str = "") -> None:
        super().__init__(status, explain)
        self.status = status
        self.explain = explain or _EXPLAINED.get(status, "")

    def body(self) -> dict[str, int | str]:
        """Return what clients read."""
        message = HTTPStatus(self.status).phrase
        return {"code": self.status, "message": message, "explain": self.explain}


def refusal(error: MoorageError) -> HttpError:
    """Return how an error of the master is told."""
    if isinstance(error, Forbidden):
        return HttpError(403, error.message)
    if isinstance(error, Conflict):
        return HttpError(409, error.message)
    if isinstance(error, NotFound):
        return HttpError(404, error.message)
    if isinstance(error, NoMaster | Failed):
        return HttpError(502, error.message)
    if isinstance(error, WrongState):
        return HttpError(503, error.message)
    return HttpError(400, error.message)


STATUSES = frozenset(_EXPLAINED)
"""Every status that is not a success."""
