# SPDX-License-Identifier: BSD-2-Clause
"""The doorkeeper: what strangers get of a port that anybody can reach.

A connection in TLS costs a third of a megabyte before its certificate has been seen. So
few strangers at a time are greeted, and no one address may take all places; the others
wait as bare connections, which cost next to nothing. The last one to come is greeted
first: those who are honest have not come to wait.
"""

import asyncio
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

_LOG = logging.getLogger(__name__)
_BREATH = 0.5
"""Seconds without accepting anybody, when there are no descriptors left."""

_LOTS = 1 << 20


class Limits(Struct, frozen=True, kw_only=True):
    """What strangers get.

    Attributes
    ----------
    greeted
        How many are in TLS at one time and have shown no certificate yet; one address
        gets at most half of these places.
    waiting
        How many wait to be greeted. Beyond that the oldest of the address that has
        the most is turned away.
    handshake
        Seconds that TLS may take.
    hurry
        Seconds that it may take while others wait, at the busiest address.
    life
        Seconds that a connection may last in all; None where a certificate was asked
        for, and the handshake has told who it is. Whoever has a life is a stranger to
        its end.
    """

    greeted: int = 128
    waiting: int = 1024
    handshake: float = 5.0
    hurry: float = 3.0
    life: float | None = None


@dataclass(eq=False, slots=True)
class _Stranger:
    """A connection of somebody who has shown nothing yet."""

    connection: socket.socket
    peer: bytes
    since: float
    greeting: asyncio.Task[None] | None = None
    handed: bool = False
    """Whether asyncio has the connection by now, and closes it."""

    def cut(self) -> None:
        """Hang up."""
        if self.greeting:
            self.greeting.cancel()
        if not self.handed:
            self.connection.close()


class Doorkeeper:
    """Accepts connections, and hands those over that come through TLS.

    Parameters
    ----------
    listener
        A socket that listens and does not block; it is closed in the end.
    factory
        Makes the protocol of a connection.

    Attributes
    ----------
    sockets
        The listener, where aiohttp looks for it.
    """

    def __init__(
        self,
        listener: socket.socket,
        factory: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        limits: Limits,
    ) -> None:
        self.sockets = (listener,)
        self._factory = factory
        self._context = context
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Stranger] = []
        self._greeted: set[_Stranger] = set()
        self._chores = [
            asyncio.create_task(self._accept(listener)),
            asyncio.create_task(self._hasten()),
        ]

    def close(self) -> None:
        """Accept nobody any more, and hang up on those who are no more than strangers.

        Connections that were handed over go on.
        """
        for chore in self._chores:
            chore.cancel()
        for stranger in (*self._greeted, *self._waiting):
            stranger.cut()
        self._waiting.clear()
        self.sockets[0].close()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = await self._loop.sock_accept(listener)
            except OSError as error:
                _LOG.warning("a connection cannot be accepted: %s", error.strerror)
                for _ in range(len(self._waiting) // 2 + 1):
                    self._turn_away()
                await asyncio.sleep(_BREATH)
                continue
            stranger = _Stranger(connection, _peer(address[0]), self._loop.time())
            self._waiting.append(stranger)
            if len(self._waiting) > min(self._limits.waiting, _share()):
                self._turn_away()
            self._greet_next()

    async def _hasten(self) -> None:
        """Cut off who takes long while others wait, at the busiest address."""
        while True:
            await asyncio.sleep(self._limits.hurry / 4)
            if not self._waiting:
                continue
            busiest = _busiest(self._greeted)
            late = self._loop.time() - self._limits.hurry
            for stranger in self._greeted:
                if stranger.peer == busiest and stranger.since < late:
                    stranger.cut()

    def _turn_away(self) -> None:
        """Hang up on the oldest of the address that most wait from."""
        if self._waiting:
            most = _busiest(self._waiting)
            oldest = next(one for one in self._waiting if one.peer == most)
            self._waiting.remove(oldest)
            oldest.cut()

    def _greet_next(self) -> None:
        """Greet as many as there are places for."""
        places = min(self._limits.greeted, _share())
        while len(self._greeted) < places and self._waiting:
            taken = Counter(one.peer for one in self._greeted)
            stranger = min(reversed(self._waiting), key=lambda one: taken[one.peer])
            if taken[stranger.peer] >= places // 2:
                return
            self._waiting.remove(stranger)
            stranger.since = self._loop.time()
            stranger.greeting = asyncio.create_task(self._greet(stranger))
            stranger.greeting.add_done_callback(partial(self._greeted_one, stranger))
            self._greeted.add(stranger)

    def _greeted_one(self, stranger: _Stranger, _: asyncio.Task[None]) -> None:
        self._greeted.discard(stranger)
        self._greet_next()

    async def _greet(self, stranger: _Stranger) -> None:
        stranger.handed = True
        with suppress(OSError, TimeoutError):  # no TLS, or no trust
            transport, _ = await self._loop.connect_accepted_socket(
                self._factory,
                stranger.connection,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake,
            )
            if self._limits.life is not None:
                await _live(transport, self._limits.life)


async def _live(transport: asyncio.Transport, seconds: float) -> None:
    """Wait until a connection is closed, and close it when its time is over."""
    try:
        async with asyncio.timeout(seconds):
            while not transport.is_closing():  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.1)
    finally:
        if not transport.is_closing():
            transport.abort()


def _share() -> int:
    """Return how many descriptors those who wait, or are greeted, may take."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _LOTS if soft == resource.RLIM_INFINITY else soft // 4


def _busiest(strangers: Iterable[_Stranger]) -> bytes:
    """Return the address that most of the strangers come from."""
    found = Counter(one.peer for one in strangers).most_common(1)
    return found[0][0] if found else b""


def _peer(address: str) -> bytes:
    """Return what counts as one address; who has one of IPv6 mostly has 2⁶⁴ of them."""
    found = ip_address(address.partition("%")[0])
    return found.packed[:8] if isinstance(found, IPv6Address) else found.packed
