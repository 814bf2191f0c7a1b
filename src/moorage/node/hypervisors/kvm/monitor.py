# SPDX-License-Identifier: BSD-2-Clause
"""Conversations with QEMU's monitor.

A monitor serves one client at a time, and there may be several agents, or tools of a
person. So a conversation is short: it is opened for a few commands, waits its turn,
and never lasts as long as a guest or a migration takes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from qemu.qmp import ExecuteError, QMPClient, QMPError
from qemu.qmp.protocol import ConnectError

from moorage.errors import Failed

from .guest_dir import Home
from .sockets import short_path

_RETRY = 0.02

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
        given = {name.replace("_", "-"): value for name, value in arguments.items()}
        try:
            return await self._client.execute(command, given or None)
        except ExecuteError as error:
            raise Refusal(self.guest, command, str(error)) from None
        except QMPError as error:
            raise Failed(
                f"QEMU of guest {self.guest} ended during {command}"
            ) from error

    async def give(self, name: str, connection: int) -> None:
        """Give QEMU the descriptor of an open connection, under a name."""
        self._send(connection)
        await self.ask("getfd", fdname=name)

    async def give_file(self, number: int, file: int, disk: str) -> None:
        """Give QEMU the descriptor of a disk's file, as a set of that number."""
        self._send(file)
        await self.ask("add-fd", fdset_id=number, opaque=disk)

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
    client = await _connected(home, name, patience)
    try:
        yield Monitor(client, name)
    finally:
        with suppress(QMPError, EOFError, OSError):
            await client.disconnect()


async def _connected(home: Home, name: str, patience: float) -> QMPClient:
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while (left := end - clock()) > 0:
        client = await _attempt(home, name, left)
        if client:
            return client
        if not home.has_process():
            raise Failed(f"guest {name} does not run on this node", guest=home.uuid)
        await asyncio.sleep(_RETRY)
    raise Failed(
        f"the monitor of guest {name} gave no answer in {patience:.0f} s: another "
        "program holds it, or QEMU hangs",
        guest=home.uuid,
    )


async def _attempt(home: Home, name: str, left: float) -> QMPClient | None:
    client = QMPClient(name)
    try:
        with short_path(home.file("monitor")) as path:
            await asyncio.wait_for(client.connect(path), left)
    except (ConnectError, TimeoutError, OSError):
        with suppress(QMPError, EOFError, OSError):
            await client.disconnect()
        return None
    return client
