# SPDX-License-Identifier: BSD-2-Clause
"""The client of the tiny guest's channel: runs commands inside a guest."""

import asyncio
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from moorage.errors import CommandFailed, MoorageError, Unreachable
from moorage.model.standstill import standstill
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.kvm.monitor import conversation
from moorage.node.hypervisors.kvm.trial import last_words
from moorage.node.machine.sockets import short_path

LONGEST_ANSWER = 1 << 26
_RETRY = 0.05
PATIENCE = 600.0
"""Seconds that a guest gets, also one that is emulated on a busy machine."""
_LINES = 5


async def silence(channel: Path) -> str:
    """Return why a guest may be silent: QEMU's word for it, and how its console ends.

    Parameters
    ----------
    channel
        The socket of its channel, in its directory.
    """
    home = Home(channel.parent.parent, channel.parent.name)
    try:
        async with conversation(home, patience=5.0) as monitor:
            status = str((await monitor.ask("query-status"))["status"])
            said = f"QEMU says {status}" + ("" if status == "running" else _why(status))
    except MoorageError as error:
        said = error.message
    console = last_words(home.read("consolelog"), _LINES)
    return f"{said}; its console ends: {console or 'it said nothing'}"


def _why(status: str) -> str:
    return f" ({standstill(status).why})"


class Guest:
    """A guest, reached through its channel socket; an async context manager.

    Parameters
    ----------
    channel
        Path of the socket; after a migration it is another one, see :meth:`at`.
    """

    def __init__(self, channel: str | Path) -> None:
        self._channel = Path(channel)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the socket, so that another client can have it."""
        writer, self._reader, self._writer = self._writer, None, None
        if writer:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def at(self, channel: str | Path) -> None:
        """Go on with the guest at another socket: it has moved."""
        await self.close()
        self._channel = Path(channel)

    async def wait_ready(self, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109
        """Wait until the guest answers.

        Raises
        ------
        Unreachable
            If it does not in `timeout` seconds.
        """
        await self.run("true", timeout)

    async def run(
        self,
        command: str,
        timeout: float = PATIENCE,  # noqa: ASYNC109
    ) -> str:
        """Run a shell command in the guest; return what it printed.

        Raises
        ------
        CommandFailed
            If its exit status is not 0.
        Unreachable
            If the guest gives no answer in `timeout` seconds, with what QEMU says of
            it and the last lines of its console.
        """
        request = uuid4().hex[:12]
        try:
            async with asyncio.timeout(timeout):
                code, output, errors = await self._answer(request, command)
        except TimeoutError:
            await self.close()
            raise Unreachable(
                f"the guest at {self._channel} gave no answer in {timeout:g} s "
                f"to: {command}; {await silence(self._channel)}"
            ) from None
        if code:
            said = (errors or output).strip()
            raise CommandFailed(f"in the guest, exit status {code}: {command}: {said}")
        return output

    async def _answer(self, request: str, command: str) -> tuple[int, str, str]:
        """Ask once, and read until the answer with the request's id comes.

        A command is never sent again, since it must not run twice.
        """
        line = f"\n{request} {b64encode(command.encode()).decode()}\n".encode()
        reader, writer = await self._connected()
        writer.write(line)
        await writer.drain()
        while True:
            words = (await self._line(reader)).split()
            if len(words) == 3 and words[0] == request:
                output, errors = map(b64decode, words[2].split(","))
                return int(words[1]), output.decode(), errors.decode()

    async def _line(self, reader: asyncio.StreamReader) -> str:
        line = await reader.readline()
        if not line:
            await self.close()
            raise Unreachable(f"the guest at {self._channel} is gone")
        return line.decode(errors="replace")

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while not (self._reader and self._writer):
            try:
                self._reader, self._writer = await self._open()
            except OSError:
                await asyncio.sleep(_RETRY)
        return self._reader, self._writer

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        with short_path(self._channel) as path:
            return await asyncio.open_unix_connection(path, limit=LONGEST_ANSWER)

    async def disk(self, serial: str, timeout: float = PATIENCE) -> str:  # noqa: ASYNC109
        """Return the device of the drive with a serial number, as ``/dev/vda``.

        Parameters
        ----------
        serial
            Or a disk's uuid, whose first 20 characters are the serial number.

        Raises
        ------
        Unreachable
            If no such drive appears in `timeout` seconds.
        """
        find = f"""for d in /sys/block/vd*; do
            [ "$(cat $d/serial)" = '{serial[:20]}' ] && echo /dev/${{d##*/}} && exit
        done; usleep 50000"""
        try:
            async with asyncio.timeout(timeout):
                found = ""
                while not found:
                    found = (await self.run(find)).strip()
        except TimeoutError:
            raise Unreachable(
                f"the guest at {self._channel} sees no drive {serial[:20]}"
            ) from None
        return found

    async def size(self, serial: str) -> int:
        """Return the size in bytes of a drive, as the guest sees it."""
        device = await self.disk(serial)
        return 512 * int(await self.run(f"cat /sys/block/{Path(device).name}/size"))
