# SPDX-License-Identifier: BSD-2-Clause
"""Exports on their way: the node that has one listens, the node that wants it comes.

As with migrations, who comes knocks with a key that is good for this one time; then
both talk TLS with that key. What is said is the dumps' bytes, one dump after the
other, and nothing else: how many they are, both know from their master.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from ipaddress import IPv4Address, ip_address
from socket import AF_INET, AF_INET6, socket
from typing import TypeVar

from moorage.errors import BadInput, Failed, MoorageError
from moorage.protocol import Door, Report
from moorage.units import MIB

from . import export_files, wire
from .certificates import one_key
from .host import Offer, Parcel
from .machine.gate import Gate, knock, listen
from .machine.turns import CURRENT, Step, Work

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
OPEN, SILENCE = 120.0, 60.0
"""Seconds that a door waits for its one guest, and that either end may be silent."""
_GREETING = 10.0
"""Seconds that TLS may take."""
_PIECE = 1 << 18
"""Bytes that are read, sent and written at once."""
_REPORTS = 1000
"""Times that it is told how much has come, and once more for each file. A master reads
no more of an answer than so many bytes, and what is told is part of it."""
_PORTS, _TRIES = 1 << 16, 256


class Carrier:
    """Sends the exports of this node, and takes those of others.

    Parameters
    ----------
    silence
        Seconds after which an end that says nothing is given up.
    """

    def __init__(self, files: export_files.Files, silence: float = SILENCE) -> None:
        self._files = files
        self._silence = silence
        self._offers: dict[str, _Offered] = {}
        self._fetched: dict[asyncio.Task[None], Work] = {}

    async def offer(self, offer: Offer) -> Door:
        """Wait for the one who is to have some files; return where.

        Raises
        ------
        Failed
            If a file is not there, or not as long as it is to be; if no port is free.
        """
        self.withdraw(offer.ident)
        family, key = _family(offer.address), secrets.token_hex(32)
        opened = await export_files.aside(
            lambda: export_files.opened(self._files, offer.parcels), export_files.close
        )
        try:
            ports = range(offer.port, min(offer.port + _TRIES, _PORTS))
            listener = wire.steady(listen(family, offer.address, ports, "an export"))
        except BaseException:
            export_files.close(opened)
            raise
        one = _Offered(offer, opened, key, listener, self._silence)
        self._offers = {
            ident: other for ident, other in self._offers.items() if not other.over
        }
        self._offers[offer.ident] = one
        return one.door

    def withdraw(self, ident: str) -> None:
        """Wait for nobody any more, and hang up on who has come."""
        if ident in self._offers:
            self._offers.pop(ident).close()

    def keep(self, believes: Callable[[frozenset[str]], bool]) -> None:
        """Withdraw what was offered by order of keys that are not believed any more."""
        for ident, one in tuple(self._offers.items()):
            if one.by and not believes(one.by):
                self.withdraw(ident)

    def adopt(self, doors: Collection[str]) -> None:
        """Let whoever orders this have offered what waits behind some doors, too.

        Parameters
        ----------
        doors
            The digest of each (`Door.digest`).
        """
        for one in self._offers.values():
            if one.door.digest in doors:
                one.by |= CURRENT.get().by

    async def fetch(
        self, parcels: Sequence[Parcel], address: str, door: Door, report: Report
    ) -> None:
        """Fetch files from where they are offered.

        Raises
        ------
        BadInput
            If it is no address, or no door that a file comes through.
        Failed
            If they do not come whole, or differ from what they are to be.
        """
        if door.place or not door.key:
            raise BadInput(
                "an export comes from a port, behind a key, and nowhere else"
            )
        taking = _Taking(self._files, parcels, report, self._silence)
        work = asyncio.create_task(self._fetch(taking, address, door))
        self._fetched[work] = CURRENT.get()
        try:
            await work
        except asyncio.CancelledError:
            ours = asyncio.current_task()
            if ours and ours.cancelling():
                raise
            raise taking.broken(address, "nobody wants it any more") from None
        finally:
            del self._fetched[work]

    def end(self, objects: Collection[str], before: Step) -> int:
        """End what steps `before` this one fetch for some objects; return how much.

        Who sends it need not help: it may be out of reach of whoever wants the end, or
        send for ever.
        """
        found = [
            task
            for task, work in self._fetched.items()
            if work.objects & set(objects) and work.step.older(before)
        ]
        for task in found:
            if not task.cancelling():
                task.cancel()
        return len(found)

    async def _fetch(self, taking: "_Taking", address: str, door: Door) -> None:
        connection = await knock(_family(address), address, door.port, door.key)
        try:
            context = one_key.context(door.key, serves=False)
            async with _talk(connection, context, serves=False) as (reader, _):
                await taking.all(reader)
        except TimeoutError:
            cause = f"nothing came for {self._silence:g} s"
            raise taking.broken(address, cause) from None
        except OSError as error:  # of the connection; ssl.SSLError is one
            raise taking.broken(address, error.strerror or str(error)) from None


class _Offered:
    """Files that wait for one who comes with the key.

    Attributes
    ----------
    over
        Whether it waits for nobody, and nobody is there.
    door
        Where it waits.
    by
        Pins of the keys by whose order it does; none where no network is used.
    """

    def __init__(
        self,
        offer: Offer,
        opened: list[tuple[int, Parcel]],
        key: str,
        listener: socket,
        silence: float,
    ) -> None:
        self.over = False
        self.by = CURRENT.get().by
        self._gate = Gate(listener, key, self._take)
        self.door = Door(port=self._gate.port, key=key)
        self._opened = opened
        self._key = key
        self._pace = Pace(offer.rate)
        self._silence = silence
        self._guest: asyncio.Task[None] | None = None
        self._late = asyncio.get_running_loop().call_later(OPEN, self.close)

    def close(self) -> None:
        """Wait no more, and hang up."""
        self._late.cancel()
        self._gate.close()
        if self._guest:
            self._guest.cancel()
        else:
            self._end()

    def _end(self) -> None:
        if not self.over:
            self.over = True
            export_files.close(self._opened)

    async def _take(self, connection: socket) -> None:
        self._late.cancel()
        self._guest = asyncio.current_task()
        try:
            context = one_key.context(self._key, serves=True)
            async with _talk(connection.dup(), context, serves=True) as (
                reader,
                writer,
            ):
                await self._send(writer)
                async with asyncio.timeout(self._silence):
                    await reader.read(1)  # it hangs up when it has taken all
        except (OSError, MoorageError) as error:
            _LOG.warning("an export was not sent whole: %s", error)
        finally:
            self._end()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        for file, parcel in self._opened:
            at = 0
            while at < parcel.size:
                piece = await export_files.read(file, min(_PIECE, parcel.size - at), at)
                if not piece:
                    raise Failed(f"{parcel.path} became shorter while it was sent")
                at += len(piece)
                await self._pace.wait(len(piece))
                async with asyncio.timeout(self._silence):
                    writer.write(piece)
                    await writer.drain()


class _Taking:
    """Files that come one after the other.

    Attributes
    ----------
    came
        Bytes of them that have come.
    """

    def __init__(
        self,
        files: export_files.Files,
        parcels: Sequence[Parcel],
        report: Report,
        silence: float,
    ) -> None:
        self.came = 0
        self._files = files
        self._parcels = parcels
        self._total = sum(parcel.size for parcel in parcels)
        self._report = report
        self._step = max(MIB, self._total // _REPORTS)
        self._silence = silence

    def broken(self, address: str, cause: str) -> Failed:
        """Return the error of a transfer that did not come to its end."""
        return Failed(
            f"the export did not come whole from {address}: {cause}, after "
            f"{self.came} of {self._total} bytes"
        )

    async def all(self, reader: asyncio.StreamReader) -> None:
        """Take all of them; each is compared when it is there."""
        left = self._total
        for parcel in self._parcels:
            file = await export_files.aside(
                partial(self._files.create, parcel.path), os.close
            )
            try:
                export_files.check_room(file, left, parcel.path)
                await self._one(reader, file, parcel)
            finally:
                os.close(file)
            left -= parcel.size

    async def _one(
        self, reader: asyncio.StreamReader, file: int, parcel: Parcel
    ) -> None:
        digest, left = hashlib.sha256(), parcel.size
        name = parcel.path.rpartition("/")[2]
        while left > 0:
            async with asyncio.timeout(self._silence):
                piece = await reader.read(min(_PIECE, left))
            if not piece:
                raise ConnectionResetError("the other node hung up")
            await export_files.aside(
                partial(export_files.write, file, piece, parcel.path, digest)
            )
            left -= len(piece)
            before, self.came = self.came, self.came + len(piece)
            if not left or before // self._step < self.came // self._step:
                done, total = self.came // MIB, self._total // MIB
                self._report(done, total, "MiB", f"fetch {name}")
        if parcel.sha256 and digest.hexdigest() != parcel.sha256:
            raise Failed(
                f"dump {name} is not what was exported: what came has another checksum"
            )


class Pace:
    """Lets bytes pass at a rate, and never faster.

    Parameters
    ----------
    rate
        MiB a second; 0 for any.
    """

    def __init__(
        self,
        rate: int,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = rate * MIB
        self._clock = clock or asyncio.get_running_loop().time
        self._sleep = sleep
        self._begin: float | None = None
        self._passed = 0

    async def wait(self, size: int) -> None:
        """Wait until so many more bytes may have passed."""
        if not self._rate:
            return
        if self._begin is None:
            self._begin = self._clock()
        self._passed += size
        early = self._begin + self._passed / self._rate - self._clock()
        if early > 0:
            await self._sleep(early)


@asynccontextmanager
async def _talk(
    connection: socket, context: ssl.SSLContext, *, serves: bool
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield both ways of a connection in TLS; it is closed in the end."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_PIECE)
    protocol = asyncio.StreamReaderProtocol(reader)
    connection.setblocking(False)
    with closing(connection):
        if serves:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=context,
                ssl_handshake_timeout=_GREETING,
            )
        else:
            transport, _ = await loop.create_connection(
                lambda: protocol,
                sock=connection,
                ssl=context,
                server_hostname=one_key.NAME,
                ssl_handshake_timeout=_GREETING,
            )
        try:
            yield reader, asyncio.StreamWriter(transport, protocol, reader, loop)
        finally:
            transport.abort()


def _family(address: str) -> int:
    with suppress(ValueError):
        found = ip_address(address)
        if isinstance(found, IPv4Address):
            return AF_INET
        if found.scope_id is None:
            return AF_INET6
    raise BadInput(f"'{address}' is no address that an export goes by")
