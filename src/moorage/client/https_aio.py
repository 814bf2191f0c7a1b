# SPDX-License-Identifier: BSD-2-Clause
"""Connections to a door on the network, that hold nobody up."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import aiohttp

from moorage.api.wanted import Wanted

from . import rest
from .https import CONNECTING, absent, broken
from .places import Door
from .stream import SILENCE, Stream
from .told import Entry

_LONG = 1 << 19
"""Bytes of an answer that is decoded in a thread: others get their turn meanwhile."""
_LONGEST = 1 << 24
"""Bytes of a line of the stream."""


class HttpsAio:
    """The way to a cluster over HTTPS; as :class:`~.https.Https`."""

    def __init__(self, door: Door, timeout: float) -> None:
        self.door = door
        self._timeout = timeout
        self._trust = door.trust()
        self._made: aiohttp.ClientSession | None = None

    async def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method of LUXI."""
        if method == "WaitForEvents":  # a stream begins with it
            return {"number": await self._newest()}
        try:
            async with self._asked(rest.request(method, args), self._timeout) as answer:
                text = await answer.read()
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            raise _why(self.door, error, self._timeout) from error
        if len(text) < _LONG:
            return rest.answer(method, answer.status, text)
        return await asyncio.to_thread(rest.answer, method, answer.status, text)

    async def _newest(self) -> int:
        async with aclosing(self.listen(None, Wanted(), None)) as stream:
            async for entry in stream:
                if entry:
                    return entry.number
        raise AssertionError("a stream without an end has ended")

    async def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield what happens until time is over; None says that the door lives."""
        stream = Stream()
        http = rest.events(after, wanted)
        try:
            async with self._asked(http, SILENCE) as answer:
                if answer.status != 200:
                    rest.result(answer.status, await answer.read())
                yield None
                while line := await self._line(answer, end):
                    yield stream.feed(line)
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            if end is None or time.monotonic() < end:
                raise _why(self.door, error, SILENCE) from error

    async def _line(self, answer: aiohttp.ClientResponse, end: float | None) -> bytes:
        """Return a line; raise `TimeoutError` when time is over."""
        left = None if end is None else end - time.monotonic()
        async with asyncio.timeout(left):
            line = await answer.content.readline()
        if not line:
            raise ConnectionError("the door hung up")
        return line

    async def close(self) -> None:
        """Hang up."""
        if self._made:
            await self._made.close()
            self._made = None

    def _asked(
        self, http: rest.Http, silence: float
    ) -> "aiohttp.client._RequestContextManager":
        headers = {"Authorization": self.door.authorization, **http.headers()}
        return self._session.request(
            http.method,
            self.door.url + http.path,
            data=http.content(),
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECTING, sock_read=silence
            ),
        )

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._made is None:
            connector = aiohttp.TCPConnector(ssl=self._trust, limit=0)
            self._made = aiohttp.ClientSession(
                connector=connector, read_bufsize=_LONGEST, middlewares=(_once,)
            )
        return self._made


async def _once(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request once: aiohttp sends most again where a connection broke."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ConnectionError(str(error)) from error


def _why(door: Door, error: Exception, silence: float) -> Exception:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found = error.certificate_error
        return absent(door, found if isinstance(found, OSError) else OSError(found))
    if isinstance(error, aiohttp.ClientConnectorError):
        return absent(door, error.os_error)
    return broken(door, error, silence)
