# SPDX-License-Identifier: BSD-2-Clause
"""Answers that are no success: Ganeti's statuses, and its body of three keys."""

from http import HTTPStatus
from typing import Any

from moorage.errors import (
    Conflict,
    Failed,
    Forbidden,
    MoorageError,
    NoMaster,
    NotFound,
    NotMaster,
    WrongState,
)

EXPLAINED = {
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
"""What a status means when nothing more is known; all that are no success."""


class HttpError(Exception):
    """A request that is answered with a status other than 200.

    Parameters
    ----------
    status
        As of HTTP.
    explain
        Why, in a sentence; that of the status when it is empty.
    error
        What the master says, if it is the one that says no.
    """

    def __init__(
        self, status: int, explain: str = "", error: MoorageError | None = None
    ) -> None:
        super().__init__(status, explain)
        self.status = status
        self.explain = explain or EXPLAINED.get(status, "")
        self.error = error

    def body(self) -> dict[str, Any]:
        """Return what clients read: Ganeti's three keys, and an error of the master."""
        message = HTTPStatus(self.status).phrase
        told = {"code": self.status, "message": message, "explain": self.explain}
        return told | ({"error": self.error.to_json()} if self.error else {})


_STATUSES: tuple[tuple[type[MoorageError], int], ...] = (
    (Forbidden, 403),
    (Conflict, 409),
    (NotFound, 404),
    (NoMaster, 502),
    (NotMaster, 502),
    (Failed, 502),
    (WrongState, 503),
    (MoorageError, 400),
)
"""How errors of the master are told: the first class that fits counts."""


def refusal(error: MoorageError) -> HttpError:
    """Return how an error of the master is told."""
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    return HttpError(status, error.message, error)
