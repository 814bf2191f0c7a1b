# SPDX-License-Identifier: BSD-2-Clause
"""What a request is refused with; a refusal changes nothing."""

from typing import ClassVar


class Refusal(Exception):
    """A request that cannot be done, in one sentence.

    Attributes
    ----------
    code
        The HTTP status that says it.
    name
        What the body of an answer calls it.
    """

    code: ClassVar[int] = 400
    name: ClassVar[str] = "badRequest"

    @property
    def sentence(self) -> str:
        """What the user is told."""
        return str(self.args[0])


class BadRequest(Refusal):
    """It is not what such a request looks like, or not the time for it."""


class Forbidden(Refusal):
    """Who asks may not."""

    code = 403
    name = "forbidden"


class NotFound(Refusal):
    """There is no such thing, or not for who asks."""

    code = 404
    name = "itemNotFound"


class Conflict(Refusal):
    """Something else is under way, or stands in the way."""

    code = 409
    name = "conflictingRequest"


class BuildInProgress(Conflict):
    """The server is being made."""

    name = "buildInProgress"


class OverLimit(Refusal):
    """More than the project's quota."""

    code = 413
    name = "overLimit"


class Unavailable(Refusal):
    """A cluster that is needed does not answer, or none is there that could do it."""

    code = 503
    name = "serviceUnavailable"
