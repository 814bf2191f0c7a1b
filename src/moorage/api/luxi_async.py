# SPDX-License-Identifier: BSD-2-Clause
"""A client of LUXI that waits without holding anybody up: for a process that serves.

A request has a connection to itself while it is under way. Who gives it up hangs up,
and the master drops what only waited for it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import DecodeError
from msgspec.json import Decoder

from moorage.errors import BadInput, NoMaster, Unreachable

from .luxi import LARGEST_ANSWER, Splitter
from .luxi_messages import END, encode_request, error_from_wire

_PIECE = 1 << 18
_KEPT = 32
"""Connections that are kept for the next requests."""
_LONG = 1 << 19
"""Bytes of an answer that is decoded in a thread: others get their turn meanwhile."""
Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""Of a connection."""


class _Link:
    """A connection to the master, good for one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._splitter = Splitter(LARGEST_ANSWER)

    @property
    def alive(self) -> bool:
        """Whether the master has not hung up."""
        return not self._reader.at_eof()

    async def ask(self, request: bytes) -> bytes:
        """Send a request; return the answer, without its end."""
        self._writer.write(request)
        await self._writer.drain()
        while data := await self._reader.read(_PIECE):
            for message in self._splitter.feed(data):
                return message
        raise ConnectionError("the master closed the connection")

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


class _Idle:
    """Connections that wait for the next request; none once they are closed."""

    def __init__(self) -> None:
        self._links: list[_Link] = []
        self._most = _KEPT

    def take(self) -> _Link | None:
        """Return one whose other end has not hung up, if there is one."""
        while self._links:
            link = self._links.pop()
            if link.alive:
                return link
            link.close()
        return None

    def give(self, link: _Link) -> None:
        """Keep a connection, or hang it up if there is no place for it."""
        if len(self._links) < self._most:
            self._links.append(link)
        else:
            link.close()

    def close(self) -> None:
        """Hang all up, and each that is given back from now on."""
        self._most = 0
        while self._links:
            self._links.pop().close()


class AsyncLuxi:
    """A client for many requests at once.

    Parameters
    ----------
    path
        The master's socket.
    timeout
        Longest wait for an answer, in seconds.
    other
        The socket of who knows the master, for when there is none; None for nobody.

    Attributes
    ----------
    caller
        Whom it asks for; None for itself.
    """

    def __init__(
        self, path: Path, timeout: float = 60.0, other: Path | None = None
    ) -> None:
        self.path = path
        self._other = other
        self.caller: Mapping[str, Any] | None = None
        self._timeout = timeout
        self._idle = _Idle()

    def of(self, caller: Mapping[str, Any]) -> "AsyncLuxi":
        """Return the same client for somebody: by a door's socket, which has to say.

        Parameters
        ----------
        caller
            As `encode_request` takes it.
        """
        found = copy(self)  # the connections are shared
        found.caller = caller
        return found

    async def call(self, method: str, *args: Any) -> Any:  # noqa: ANN401
        """Return the result of a method; whole numbers have no point in it.

        Raises
        ------
        MoorageError
            The one that the master raised.
        NoMaster
            If nothing listens on the socket.
        Unreachable
            If the master went away before it answered, or answered nonsense.
        TimeoutError
            If it took too long.
        """
        link = await self._link()
        try:
            async with asyncio.timeout(self._timeout):
                message = await link.ask(encode_request(method, args, self.caller))
        except (ConnectionError, BadInput) as error:
            link.close()
            raise Unreachable(
                f"the connection to the master broke: {error}", lost="master"
            ) from error
        except BaseException:
            link.close()  # an answer may be on its way: the next one must not read it
            raise
        self._idle.give(link)
        if len(message) < _LONG:
            return _result(message)
        return await asyncio.to_thread(_result, message)

    async def line(self, *args: str) -> tuple[Any, Ends]:
        """Open a line to a guest (``ConnectInstance``), on a connection of its own.

        Returns what is told of it, and both ends of the connection, which is the
        guest's from now on. Raises as :meth:`call` does.
        """
        reader, writer = await self._connected()
        try:
            async with asyncio.timeout(self._timeout):
                writer.write(encode_request("ConnectInstance", args, self.caller))
                await writer.drain()
                message = await reader.readuntil(END)
            return _result(message.removesuffix(END)), (reader, writer)
        except (ConnectionError, EOFError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise Unreachable(
                f"the connection to the master broke: {error}", lost="master"
            ) from error
        except BaseException:
            writer.close()
            raise

    def close(self) -> None:
        """Hang up: at once where nobody waits, and after their answer elsewhere."""
        self._idle.close()

    async def _link(self) -> _Link:
        return self._idle.take() or _Link(*await self._connected())

    async def _connected(self) -> Ends:
        for path in filter(None, (self.path, self._other)):
            with suppress(OSError):
                return await asyncio.open_unix_connection(path, limit=_PIECE)
        raise NoMaster(f"no master listens on {self.path}")


def _number(text: str) -> float | int:
    """Return a number; clients in strict languages have whole ones in integers."""
    with suppress(ValueError):
        return int(text.removesuffix(".0"))
    return float(text)


_DECODER = Decoder(float_hook=_number)


def _result(message: bytes) -> Any:  # noqa: ANN401
    """Return the result in an answer, or raise the error."""
    try:
        answer = _DECODER.decode(message)
        succeeded, result = answer["success"], answer["result"]
    except (DecodeError, TypeError, KeyError) as error:
        raise Unreachable(f"the master answered nonsense: {error}") from error
    if not succeeded:
        raise error_from_wire(result)
    return result
