# SPDX-License-Identifier: BSD-2-Clause
"""The content of images that others may have written, by a QEMU that has no rights.

Whoever wrote an image has QEMU parse what he likes. So that QEMU is one that a guest
could have: a user of its own, without capabilities, in QEMU's sandbox and in a room
apart, with the open descriptors of the images and nothing else. A program gets the
content by connections to it, and has no right either where it needs nothing else.

``qemu-img`` alone could not do it: it takes paths only, and the path of a descriptor
(``/proc/self/fd/7``) is opened anew, which the file's permissions deny to that user.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from msgspec import Struct, convert
from qemu.qmp import ExecuteError, QMPClient, QMPError

from moorage import durable
from moorage.errors import Failed
from moorage.model.uidpool import UidPool
from moorage.node.text import clean
from moorage.storage import Content

from . import users
from .commands import start_daemon, tail_of
from .images import Handed
from .room import Room
from .scripts import Note, Scripts
from .sockets import listener, short_path

PROGRAM = "qemu-system-x86_64"
_ANSWER, _END = 60.0, 60.0
"""Seconds that QEMU may take for one command, and to write what it holds."""
_LOOK = 0.01
"""Seconds between two looks."""
_LINE = 1 << 20
"""Bytes of one answer."""
_SAID = 500
"""Characters of a refusal that an error shows."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
_QEMU = (
    *(PROGRAM, "-machine", "none", "-accel", "tcg,tb-size=1", "-display", "none"),
    *("-nodefaults", "-no-user-config", "-sandbox", _SANDBOX),
)
_DOOR = "door"
_BOUND = ("setpriv", "--pdeathsig=KILL", "--")


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is open."""

    descriptor: int
    content: Content

    def nodes(self, number: int) -> Iterator[dict[str, object]]:
        """Yield the block nodes that lead to its content; no other file is followed."""
        shared = {"read-only": not self.content.writes, "discard": "unmap"}
        driver = "host_device" if self.content.block else "file"
        file = {"driver": driver, "filename": f"/dev/fdset/{number}"}
        yield {**file, "node-name": f"file{number}", **shared}
        apart = {"backing": None} if self.content.form == "qcow2" else {}
        form = {"driver": self.content.form, "file": f"file{number}", **apart}
        packed = self.content.packed
        name = f"unpacked{number}" if packed else f"image{number}"
        yield {**form, "node-name": name, **shared}
        if packed:
            yield {"driver": "compress", "file": name, "node-name": f"image{number}"}


class Contents:
    """What programs of this node get of images.

    Parameters
    ----------
    directory
        Where the agent and the QEMU that opens them meet.
    scripts
        Where that QEMU is noted; None for nowhere.
    bound
        Whether that QEMU ends when this process does, whatever ends it.
    """

    def __init__(
        self, directory: Path, scripts: Scripts | None = None, *, bound: bool = False
    ) -> None:
        self._directory = directory
        self._bound = _BOUND if bound else ()
        self._scripts = scripts
        self._room = Room(directory / "room")
        self._numbers = count(1)

    @asynccontextmanager
    async def served(
        self, images: Mapping[str, Image], pool: UidPool, *, alone: bool
    ) -> AsyncIterator[Handed]:
        """Yield what a program gets instead of images, while the block runs.

        Parameters
        ----------
        pool
            Of the users that the QEMU may be.
        alone
            Whether the program needs nothing else: it has no rights either, then.

        Raises
        ------
        Failed
            If an image is not of its format, or needs other files.
        """
        if shutil.which(PROGRAM) is None:
            raise Failed(
                f"{PROGRAM} is missing, by which images are read that others may write",
                hint="apt-get install qemu-system-x86",
            )
        durable.make(self._directory)
        async with AsyncExitStack() as stack:
            user = stack.enter_context(users.lent(pool))
            front = await asyncio.to_thread(self._room.words, user)
            front += self._bound
            given = list(images.values())
            keep = () if user.lock is None else (user.lock,)
            monitor = await stack.enter_async_context(self._qemu(front, given, keep))
            door, connections = stack.enter_context(self._door(len(given)))
            await monitor.serve(given, door)
            words = {
                path: _word(connection, number)
                for number, (path, connection) in enumerate(
                    zip(images, connections, strict=True)
                )
            }
            yield Handed(words, connections, front if alone else ())

    @contextmanager
    def _door(self, number: int) -> Iterator[tuple[int, list[int]]]:
        """Yield a socket that nobody else reaches, and so many connections to it."""
        path = self._directory / f"{os.getpid()}-{next(self._numbers)}"
        made = [socket.socket(socket.AF_UNIX) for _ in range(number)]
        listening = listener(path)
        try:
            with short_path(path) as name:
                for one in made:
                    one.connect(name)
            path.unlink()
            yield listening.fileno(), [one.fileno() for one in made]
        finally:
            path.unlink(missing_ok=True)
            for one in (listening, *made):
                one.close()

    @asynccontextmanager
    async def _qemu(
        self, front: Sequence[str], images: Sequence[Image], keep: Sequence[int]
    ) -> AsyncIterator["_Monitor"]:
        """Run a QEMU that has images open; yield the conversation with it."""
        noted = self._scripts.noted() if self._scripts else nullcontext()
        own, its = socket.socketpair()
        with own, TemporaryFile() as log, noted as note:
            with its:
                words = [*front, *_words(images, its.fileno())]
                fds = [*(one.descriptor for one in images), *keep, its.fileno()]
                process = await start_daemon(words, fds, log, note)
            client = QMPClient("images", _LINE)
            try:
                await _connect(client, own, log)
                yield _Monitor(client)
            finally:
                await _end(process, client, note)


class _Job(Struct):
    """What QEMU says of a job."""

    status: str
    error: str = ""


class _Monitor:
    """The conversation with a QEMU that may be its image's by now."""

    def __init__(self, client: QMPClient) -> None:
        self._client = client

    async def serve(self, images: Sequence[Image], door: int) -> None:
        """Let it open images, and serve them at a socket."""
        for number, one in enumerate(images):
            file, *others = one.nodes(number)
            await self._ask("blockdev-add", **file)
            if one.content.made and one.content.form == "qcow2":
                await self._make(f"file{number}", one.content)
            for node in others:
                await self._ask("blockdev-add", **node)
        self._client.send_fd_scm(door)
        await self._ask("getfd", fdname=_DOOR)
        address = {"type": "fd", "data": {"str": _DOOR}}
        await self._ask("nbd-server-start", addr=address)
        for number, one in enumerate(images):
            names = {"id": f"export{number}", "name": str(number)}
            served = {"node-name": f"image{number}", "writable": one.content.writes}
            await self._ask("block-export-add", type="nbd", **names, **served)

    async def _make(self, file: str, content: Content) -> None:
        """Make an empty image."""
        wanted = {"driver": content.form, "file": file, "size": content.made}
        job = f"make-{file}"
        await self._ask("blockdev-create", **{"job-id": job, "options": wanted})
        while True:
            (told,) = convert(await self._ask("query-jobs"), list[_Job])
            if told.status == "concluded":
                break
            await asyncio.sleep(_LOOK)
        if told.error:
            raise Failed(f"an image cannot be made: {clean(told.error[:_SAID])}")
        await self._ask("job-dismiss", id=job)

    async def _ask(self, command: str, **arguments: object) -> object:
        try:
            async with asyncio.timeout(_ANSWER):
                return await self._client.execute(command, arguments)
        except ExecuteError as error:
            raise Failed(f"QEMU refuses the image: {_said(error)}") from None
        except (QMPError, TimeoutError) as error:
            raise Failed(f"QEMU ended over the image: {_said(error)}") from None


def _said(error: BaseException) -> str:
    return clean(str(error)[:_SAID]) or type(error).__name__


def _words(images: Sequence[Image], monitor: int) -> Iterator[str]:
    yield from _QEMU
    for number, one in enumerate(images):
        yield from ("-add-fd", f"fd={one.descriptor},set={number}")
    yield from ("-chardev", f"socket,id=monitor,fd={monitor},server=off")
    yield from ("-mon", "chardev=monitor,mode=control")


def _word(connection: int, number: int) -> str:
    """Return what ``qemu-img`` takes for the content of an image."""
    server = {"type": "fd", "str": str(connection)}
    node = {"driver": "nbd", "server": server, "export": str(number)}
    return "json:" + json.dumps({"driver": "raw", "file": node})


async def _connect(client: QMPClient, own: socket.socket, log: IO[bytes]) -> None:
    client.events.event_filter = lambda _event: False  # else they are kept
    try:
        async with asyncio.timeout(_ANSWER):
            await client.connect(own)
    except (QMPError, OSError, EOFError) as error:  # TimeoutError is an OSError
        told = "; ".join(tail_of(log)) or _said(error)
        raise Failed(f"the QEMU that reads images does not start: {told}") from None


async def _end(
    process: asyncio.subprocess.Process, client: QMPClient, note: Note | None
) -> None:
    """End it; what was written is with the storage before it is gone."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_END):
            await process.wait()
    except TimeoutError:
        raise Failed(
            f"what was written is not with the storage after {_END:g} s: it hangs"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            if note:
                await note.end()
            await process.wait()
        with suppress(Exception):  # what it said last may be anything
            await client.disconnect()
