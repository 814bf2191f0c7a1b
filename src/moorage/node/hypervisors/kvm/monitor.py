# SPDX-License-Identifier: BSD-2-Clause
"""Conversations with QEMU's monitor.

A monitor serves one client at a time, and there may be several agents, or tools of a
person. So a conversation is short: it is opened for a few commands, waits its turn,
and never lasts as long as a guest or a migration takes.

QEMU may be its guest's by now. So what it says is bounded, must have the shape that is
asked for, and comes in time; whatever it says else is a `Failed` of this guest alone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec import ValidationError, convert
from qemu.qmp import ExecuteError, Message, QMPClient, QMPError
from qemu.qmp.protocol import ConnectError

from moorage.errors import Failed
from moorage.node.machine.sockets import short_path
from moorage.node.text import clean

from . import shapes
from .guest_dir import Home

T = TypeVar("T")

_RETRY = 0.02
_ANSWER = 60.0
"""Seconds that QEMU may take for one command."""
_FAREWELL = 5.0
"""Seconds that the end of a conversation may take."""
_SAID = 2000
"""Characters of a refusal."""
_UNDERSCORED = frozenset({"bps_rd", "bps_wr", "iops_rd", "iops_wr"})
"""Arguments of old commands, which QEMU never respelled."""
_LINE = 1 << 20
"""Bytes of one answer: 16 drives take a fiftieth of it."""

logging.getLogger("qemu.qmp").setLevel(
    logging.CRITICAL
)  # errors are raised, not logged


class Refusal(Failed):
    """QEMU understood a command and refused it; `said` is its own words."""

    def __init__(self, guest: str, command: str, said: str) -> None:
        super().__init__(f"QEMU of guest {guest} refused {command}: {said}")
        self.said = said


class Monitor:
    """A conversation that is under way."""

    def __init__(self, client: QMPClient, guest: str) -> None:
        self._client = client
        self.guest = guest

    async def ask(self, command: str, **arguments: object) -> Any:  # noqa: ANN401
        """Return what QEMU answers, as JSON values; dashes are written underscores.

        Raises
        ------
        Refusal
            With QEMU's own words.
        Failed
            If QEMU ended.
        """
        given = {_spelled(name): value for name, value in arguments.items()}
        try:
            async with asyncio.timeout(_ANSWER):
                return await self._client.execute(command, given or None)
        except ExecuteError as error:
            said = str(error)[:_SAID]
            raise Refusal(self.guest, command, clean(said)) from None
        except TimeoutError:
            raise Failed(
                f"QEMU of guest {self.guest} gave no answer to {command} in "
                f"{_ANSWER:.0f} s"
            ) from None
        except QMPError as error:
            raise Failed(
                f"QEMU of guest {self.guest} ended during {command}"
            ) from error

    async def read(self, kind: type[T], command: str, **arguments: object) -> T:
        """Return what QEMU answers, if it has the shape that is wanted.

        Raises
        ------
        Failed
            If it has not, or as :meth:`ask` does.
        """
        answer = await self.ask(command, **arguments)
        try:
            return convert(answer, kind)
        except (ValidationError, RecursionError):
            raise Failed(
                f"QEMU of guest {self.guest} does not answer {command} as QEMU does"
            ) from None

    async def give(self, name: str, connection: int) -> None:
        """Give QEMU the descriptor of an open connection, under a name."""
        self._send(connection)
        await self.ask("getfd", fdname=name)

    async def give_file(self, number: int, file: int, disk: str) -> int:
        """Give QEMU the descriptor of a disk's file, as a set of that number.

        Returns
        -------
        The descriptor's number in QEMU.
        """
        self._send(file)
        words = {"fdset_id": number, "opaque": disk}
        return (await self.read(shapes.Given, "add-fd", **words)).fd

    def _send(self, descriptor: int) -> None:
        try:
            self._client.send_fd_scm(descriptor)
        except (QMPError, OSError) as error:
            raise Failed(f"QEMU of guest {self.guest} ended") from error


@asynccontextmanager
async def conversation(home: Home, patience: float = 30.0) -> AsyncIterator[Monitor]:
    """Open a conversation with the guest's monitor, and close it at the end.

    Parameters
    ----------
    patience
        Seconds to wait for a turn.

    Raises
    ------
    Failed
        If the guest has no process, or its monitor stays busy.
    """
    name = home.spec().name
    line = Line(home.uuid, name, home.file("monitor"), home.has_process)
    async with line.opened(patience) as monitor:
        yield monitor


@dataclass(frozen=True, slots=True)
class Line:
    """The way to a guest's monitor, whoever started the guest.

    Attributes
    ----------
    uuid, name
        Of the guest.
    monitor
        Its socket.
    lives
        Whether the guest has a process.
    """

    uuid: str
    name: str
    monitor: Path
    lives: Callable[[], bool]

    @asynccontextmanager
    async def opened(self, patience: float) -> AsyncIterator[Monitor]:
        """Open a conversation as :func:`conversation` does."""
        client = await _connected(self, patience)
        try:
            yield Monitor(client, self.name)
        finally:
            await _hang_up(client)


async def _connected(line: Line, patience: float) -> QMPClient:
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while (left := end - clock()) > 0:
        client = await _attempt(line, left)
        if client:
            return client
        if not line.lives():
            raise Failed(
                f"guest {line.name} does not run on this node", guest=line.uuid
            )
        await asyncio.sleep(_RETRY)
    raise Failed(
        f"the monitor of guest {line.name} gave no answer in {patience:.0f} s: another "
        "program holds it, or QEMU hangs",
        guest=line.uuid,
    )


async def _attempt(line: Line, left: float) -> QMPClient | None:
    client = QMPClient(line.name, _LINE)
    client.events.event_filter = _nothing  # else they are kept, however many come
    try:
        with short_path(line.monitor) as path:
            await asyncio.wait_for(client.connect(path), left)
    except (ConnectError, TimeoutError, OSError):
        await _hang_up(client)
        return None
    return client


def _spelled(name: str) -> str:
    return name if name in _UNDERSCORED else name.replace("_", "-")


def _nothing(_event: Message) -> bool:
    """Let no event through."""
    return False


async def _hang_up(client: QMPClient) -> None:
    # What broke the conversation is told here again, and may be anything.
    with suppress(Exception):
        async with asyncio.timeout(_FAREWELL):
            await client.disconnect()
