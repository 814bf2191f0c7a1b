# SPDX-License-Identifier: BSD-2-Clause
"""The port where a guest waits for a migration, and who is let through to its QEMU.

QEMU itself would take whoever connects first, and stand still while that one is silent
about its TLS. So the agents connect: the source knocks with what only the holder of the
migration's key knows, and both hand the open connection to their QEMUs. Who asks for it
is told that its connection was taken: what it does then came later than that.
"""

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from moorage.errors import Failed, MoorageError
from moorage.node import wire

Taker = Callable[[socket.socket], Awaitable[None]]

_PATIENCE = 5.0
"""Seconds that a connection may take to knock, or to come about."""
_ENTRY = 25.0
"""Seconds that the other side may take to hand the connection to its QEMU."""
_BREATH = 0.2
"""Seconds before the next one is let in, when that was not possible."""
_MOST = 64
"""Connections that may not have knocked yet; the oldest gives way."""
_WORD, _ASKING = b"moorage migration", b"moorage migration, tell me when I am in"
"""What is knocked with; an agent of an earlier version knows the first one only."""
_IN = b"\x01"
"""Says that a connection was taken. QEMU, which has it next, lets the other begin."""
LAST = range(834, 847)
"""Ports that are tried when others are taken: no user of the machine can hold these up,
for they are root's. Nothing else is known to use them."""


def _knock(key: str, word: bytes) -> bytes:
    return hmac.digest(bytes.fromhex(key), word, "sha256")


class Gate:
    """Listens for one source; hands its connection on, and closes.

    Parameters
    ----------
    listener
        A socket that listens.
    key
        The migration's.
    take
        Gets the connection.
    """

    def __init__(self, listener: socket.socket, key: str, take: Taker) -> None:
        self.key = key
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._knock, self._asking = _knock(key, _WORD), _knock(key, _ASKING)
        self._take = take
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._taken: asyncio.Task[None] | None = None
        self._serving = asyncio.create_task(self._serve())
        # Of a task that is cancelled before it has begun, no line is run.
        self._serving.add_done_callback(self._end)

    def is_open(self) -> bool:
        """Whether it still waits."""
        return not (self._serving.done() or self._serving.cancelling())

    def close(self) -> None:
        """Wait no longer."""
        self._serving.cancel()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:  # no descriptors are left, or the caller has left
                await asyncio.sleep(_BREATH)
                continue
            self._listen_to(connection)

    def _end(self, _serving: asyncio.Task[None]) -> None:
        self._listener.close()
        for stranger in tuple(self._strangers):
            stranger.cancel()

    def _listen_to(self, connection: socket.socket) -> None:
        task = asyncio.create_task(self._hear(connection))
        self._strangers[task] = None
        task.add_done_callback(lambda one: self._strangers.pop(one, None))
        if len(self._strangers) > _MOST:
            next(iter(self._strangers)).cancel()

    async def _hear(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, TimeoutError, MoorageError):
            async with asyncio.timeout(_PATIENCE):
                said = await _exactly(connection, len(self._knock))
            asks = hmac.compare_digest(said, self._asking)
            if (asks or hmac.compare_digest(said, self._knock)) and self.is_open():
                self._let_in()
                await self._take(wire.steady(connection))
                if asks:
                    await asyncio.get_running_loop().sock_sendall(connection, _IN)

    def _let_in(self) -> None:
        """Wait no longer; who is being heard right now is not cut off with the rest."""
        self._taken = asyncio.current_task()
        if self._taken:
            self._strangers.pop(self._taken, None)
        self.close()


async def _exactly(connection: socket.socket, size: int) -> bytes:
    """Return so many bytes and take no more: what follows is for QEMU."""
    loop = asyncio.get_running_loop()
    found = b""
    while len(found) < size:
        more = await loop.sock_recv(connection, size - len(found))
        if not more:
            raise ConnectionResetError
        found += more
    return found


def listen(
    family: int,
    address: str,
    ports: range,
    what: str = "a migration",
    last: range = LAST,
) -> socket.socket:
    """Listen at the first free port, or a last one, for `what`.

    Raises
    ------
    Failed
        If none of them can be had.
    """
    said = "no port was tried"
    for port in (*ports, *last):
        found = socket.socket(family, socket.SOCK_STREAM)
        try:
            found.setblocking(False)
            # Who was let in before, and is still there, does not keep the port.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((address, port))
            found.listen(_MOST)
        except OSError as error:
            found.close()
            if port in ports:
                said = error.strerror or str(error)
        else:
            return found
    raise Failed(
        f"no port is free for {what} on {address} from {ports.start} on: {said}",
        hint="ss -ltnp shows who holds them",
    )


async def knock(
    family: int, address: str, port: int, key: str, *, asks: bool = False
) -> socket.socket:
    """Return a connection to a gate that has heard the key; it does not block.

    Parameters
    ----------
    asks
        Whether to wait until the connection was taken: the gate must be one that tells.

    Raises
    ------
    Failed
        If nobody is there, or lets nobody in.
    """
    loop = asyncio.get_running_loop()
    found = wire.steady(socket.socket(family, socket.SOCK_STREAM))
    found.setblocking(False)
    try:
        async with asyncio.timeout(_PATIENCE):
            await loop.sock_connect(found, (address, port))
            await loop.sock_sendall(found, _knock(key, _ASKING if asks else _WORD))
        if asks:
            async with asyncio.timeout(_ENTRY):
                await _exactly(found, len(_IN))
    except (OSError, TimeoutError) as error:
        found.close()
        late = "no answer in time" if isinstance(error, TimeoutError) else "it hung up"
        cause = getattr(error, "strerror", None) or late
        raise Failed(f"no connection to {address} port {port}: {cause}") from error
    return found
