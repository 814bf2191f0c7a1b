# SPDX-License-Identifier: BSD-2-Clause
"""Tickets: each opens the console of one guest, once, for two minutes.

Whoever brings one is nobody's master, and shows no certificate. So each ticket has a
port of its own, which closes when it was used or is over; the agent's door stays
closed to everybody but masters.
"""

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from socket import AF_INET, AF_INET6, socket

from msgspec import json

from moorage.errors import Failed, MoorageError
from moorage.node import wire
from moorage.node.certificates.keys import Keys
from moorage.node.hypervisors.kvm.lines import TICKET
from moorage.node.lines import ALWAYS, StreamLine, carry, traced
from moorage.node.machine import gate
from moorage.node.text import clean
from moorage.protocol import Drawn
from moorage.units import counted

from .doorkeeper import Doorkeeper, Limits

_LOG = logging.getLogger(__name__)
PORTS = range(1830, 1862)
_PATIENCE = 5.0
"""Seconds in which a secret must be said."""
_STRANGERS = Limits(greeted=8, waiting=32)
_MOST = 32
"""Strangers at a port that have not said the secret yet; the oldest gives way."""

Connect = Callable[[], Awaitable[socket]]


class Tickets:
    """Waits for those who bring tickets.

    Parameters
    ----------
    keys
        The node's.
    lasts
        Seconds in which a ticket can be used.
    """

    def __init__(self, keys: Keys, lasts: int = TICKET) -> None:
        self._keys = keys
        self._lasts = lasts
        self._doors: set[_Door] = set()
        # Who drew a ticket is not asked when it is used: it may have been a thief.
        keys.taken_back.append(self.hang_up)

    def draw(
        self, address: str, told: Mapping[str, str], connect: Connect, by: str = ""
    ) -> Drawn:
        """Return a new ticket.

        Parameters
        ----------
        address
            Of this node, where its holder comes.
        told
            What its holder is told of the line.
        connect
            Returns a connection to the guest's console.
        by
            Who asked the master for it, for the log.

        Raises
        ------
        Failed
            If no port is free.
        """
        context, fingerprint = self._keys.for_strangers()
        family = AF_INET6 if ":" in address else AF_INET
        listener = wire.steady(self._listen(family, address))
        by = f"{clean(by) or 'nobody named'}, at the master"
        door = _Door(told, connect, by)
        door.keeper = Doorkeeper(listener, door.stranger, context, _STRANGERS)
        asyncio.get_running_loop().call_later(self._lasts, door.shut)
        self._doors = {one for one in self._doors if not one.over} | {door}
        _LOG.info(
            "a ticket for the console of %s was drawn by %s",
            *(clean(told["instance"]), by),
            extra=ALWAYS,
        )
        port = listener.getsockname()[1]
        return Drawn(
            port=port, secret=door.secret, fingerprint=fingerprint, lasts=self._lasts
        )

    def _listen(self, family: int, address: str) -> socket:
        waiting = sum(one.keeper is not None for one in self._doors)
        # Those behind are for when others hold these up, and for migrations, too.
        last = gate.LAST if waiting < len(PORTS) else range(0)
        try:
            return gate.listen(family, address, PORTS, "a console", last)
        except Failed as error:
            if not waiting:
                raise
            raise error.with_hint(
                f"its ports wait for those who drew {counted(waiting, 'ticket')}; each "
                f"is over {self._lasts} seconds after it was drawn"
            ) from None

    def hang_up(self) -> None:
        """Wait for nobody any more, and hang up on those who are there."""
        for door in self._doors:
            door.shut()
            for writer in door.heard.values():
                if not writer.is_closing():
                    writer.transport.abort()

    async def close(self) -> None:
        """Hang up, and wait until all are gone."""
        self.hang_up()
        heard = [task for door in self._doors for task in door.heard]
        await asyncio.gather(*heard, return_exceptions=True)


class _Door:
    """Waits for the holder of one ticket.

    Attributes
    ----------
    heard
        Those who came, the holder and strangers, while they are there.
    """

    def __init__(self, told: Mapping[str, str], connect: Connect, by: str) -> None:
        self.secret = secrets.token_urlsafe(24)
        self.keeper: Doorkeeper | None = None
        self.heard: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._told = told
        self._connect = connect
        self._by = by
        self._used = False
        self._holder: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it waits no more, and nobody is there."""
        return self.keeper is None and not self.heard

    def shut(self) -> None:
        """Wait no more; who is inside stays."""
        if self.keeper:
            self.keeper.close()
            self.keeper = None

    def stranger(self) -> asyncio.StreamReaderProtocol:
        """Return what hears somebody who has come."""
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._came)

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._hear(reader, writer))
        self.heard[task] = writer
        task.add_done_callback(self.heard.pop)
        strangers = [one for one in self.heard if one is not self._holder]
        if len(strangers) > _MOST:
            self.heard[strangers[0]].transport.abort()

    async def _hear(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with (
            closing(writer),
            suppress(OSError, TimeoutError, asyncio.IncompleteReadError),
        ):
            async with asyncio.timeout(_PATIENCE):
                said = await reader.readexactly(len(self.secret))
            if self._used or not hmac.compare_digest(said, self.secret.encode()):
                return
            self._used, self._holder = True, asyncio.current_task()
            # Not at once: the doorkeeper has not done with this one yet.
            asyncio.get_running_loop().call_soon(self.shut)
            at = writer.get_extra_info("peername")[0]
            by = f"who came from {at} with a ticket that was drawn by {self._by}"
            with traced("serial", self._told["instance"], by):
                await self._carry(StreamLine(reader, writer))

    async def _carry(self, came: StreamLine) -> None:
        try:
            guest = await StreamLine.over(await self._connect())
        except (MoorageError, OSError) as error:
            known = error if isinstance(error, MoorageError) else Failed(str(error))
            await came.write(json.encode({"error": known.to_json()}) + b"\n")
            return
        await came.write(json.encode({"result": self._told}) + b"\n")
        await carry(came, guest)
