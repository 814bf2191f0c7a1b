# SPDX-License-Identifier: BSD-2-Clause
"""The way of a client in the door's process: no connection, the same answers."""

import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from msgspec import json

from moorage.api.rapi.events import Hub
from moorage.api.rapi.inside import Inside
from moorage.api.rapi.refusals import HttpError
from moorage.api.wanted import Wanted
from moorage.client import rest, told
from moorage.client.told import Entry

from .shared import Shared

_LOOKS = frozenset(
    ("Query", "QueryClusterInfo", "QueryConfigValues", "QueryDiskStory", "QueryFields")
) | {"QueryJobs"}
"""Methods that only look: who has the same role gets the same answer."""


class InsideWay:
    """Asks resources in the name of somebody who is in.

    Parameters
    ----------
    hub
        Hears what happens.
    shared
        Of a moment ago.
    anew
        Whether none of them is good enough.
    """

    def __init__(self, inside: Inside, hub: Hub, shared: Shared, *, anew: bool) -> None:
        self._inside = inside
        self._hub = hub
        self._shared = shared
        self._anew = anew

    async def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method of LUXI, as a resource tells it."""
        ask = partial(self._asked, method, args)
        if method not in _LOOKS:
            return await ask()
        question = self._inside.role, method, json.encode(args)
        return await self._shared.of(question, ask, anew=self._anew)

    async def _asked(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        http = rest.request(method, args)
        try:
            answer = await self._inside.ask(*http)
        except HttpError as error:
            return rest.result(error.status, json.encode(error.body()))
        if isinstance(answer, str):  # it is no JSON
            return rest.answer(method, 200, answer.encode())
        return rest.read(method, answer)

    async def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield what happens until time is over; None says that nothing did."""
        await self._hub.ready()
        async for entries in self._hub.after(after):
            if end is not None and time.monotonic() >= end:
                return
            if entries is None:
                yield None
            for one in entries or ():
                if isinstance(one, int):
                    yield Entry(one, reset=True)
                elif kept := wanted.of(one):
                    yield told.entry(kept)

    async def close(self) -> None:
        """Do nothing: there is no connection."""
