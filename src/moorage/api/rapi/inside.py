# SPDX-License-Identifier: BSD-2-Clause
"""Resources, asked from inside the door's process by somebody who has come in.

Roles, the limits of time and the words of refusals are those of a request over HTTPS.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

from moorage.api.luxi_async import AsyncLuxi, Ends

from .application import Door
from .refusals import HttpError
from .roles import Role, User
from .route import Asked, Route

_PART = re.compile(r"{(\w+)}")


class Inside:
    """Somebody who is in.

    Parameters
    ----------
    luxi
        The way to the master, in his name.

    Attributes
    ----------
    made
        Numbers of the jobs that he made.
    """

    def __init__(self, door: Door, user: User, luxi: AsyncLuxi) -> None:
        self.made: list[int] = []
        self._door, self._user, self._luxi = door, user, luxi

    @property
    def role(self) -> Role:
        """What he may do."""
        return self._user.role

    def refused(self, method: str, path: str) -> str:
        """Return why he may not ask for something; empty if he may."""
        route, _ = _found(self._door.routes, method, path)
        try:
            route.check(self._user)
        except HttpError as error:
            return error.explain
        return ""

    async def ask(
        self,
        method: str,
        target: str,
        body: Any = None,  # noqa: ANN401 - any JSON
        key: str = "",
    ) -> Any:  # noqa: ANN401
        """Return what a resource answers.

        Parameters
        ----------
        target
            The path, with what stands behind the question mark.
        key
            The request's own name, if it may come twice.

        Raises
        ------
        HttpError
            If the request is off, or he may not ask.
        MoorageError
            What the master says.
        """
        path, _, query = target.partition("?")
        route, parts = _found(self._door.routes, method, path)
        route.check(self._user)
        args = route.read(parse_qs(query, keep_blank_values=True))
        asked = Asked(self._luxi, parts, args, body, route.resource, self.made, key)
        asked.gate, asked.survival = self._door.gate, self._door.survival
        try:
            async with asyncio.timeout(self._door.gate.limits.answer):
                return await route.serve(asked)
        except TimeoutError:
            raise HttpError(504) from None

    async def line(self, name: str, kind: str, ticket: str) -> tuple[Any, Ends]:
        """Open a line to a guest, as :meth:`AsyncLuxi.line`; the master asks his role.

        Parameters
        ----------
        kind
            ``serial``, or ``vnc``.
        ticket
            What VNC shall ask for, for two minutes.
        """
        return await self._luxi.line(name, kind, ticket)


def _found(
    routes: Sequence[Route], method: str, path: str
) -> tuple[Route, Mapping[str, str]]:
    """Return the route of a path, and the parts of that which vary."""
    for route in routes:
        pattern = _PART.sub(r"(?P<\1>[^/]+)", route.path)
        match = re.fullmatch(pattern, path) if route.method == method else None
        if match:
            parts = {name: unquote(text) for name, text in match.groupdict().items()}
            return route, parts
    raise HttpError(404)
