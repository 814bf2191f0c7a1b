# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's socket: several clients at once, and whoever answers them.

One client's requests are answered in order. A client that goes away costs nothing:
what only waits for it is dropped; what changes something goes on to its end.
"""

import asyncio
import contextlib
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from moorage.errors import (
    BadInput,
    Failed,
    Forbidden,
    MoorageError,
    WrongState,
    sentence,
)
from moorage.node.lines import Line, StreamLine, carry, traced
from moorage.store import StoreLost

from .luxi_caller import CALLER, Believed, peer, said
from .luxi_inbox import MOST, PIECE, Inbox, Inboxes
from .luxi_messages import decode_caller, decode_request, encode_error, encode_result
from .luxi_request import ConnectInstance, Request
from .luxi_texts import check_texts

LARGEST_REQUEST = 64 * 1024 * 1024
"""Bytes of the longest request."""
_BACKLOG = 1024
_FAREWELL = 2.0
"""Seconds that clients, and requests under way, get when the server stops."""
_BELIEVED: ContextVar[Believed | None] = ContextVar("_BELIEVED", default=None)
"""Whose word is taken for who asks, on the connection that is served."""


class GoneError(ConnectionError):
    """The client of a request that only waits hung up."""


class LuxiSocket(ABC):
    """Takes requests on a Unix socket that only its owner may use.

    Parameters
    ----------
    path
        Of the socket; a file that an earlier process left there is replaced.
    longest
        Bytes of the longest request that is read.
    most
        Bytes of all requests together that are not answered yet.
    doors
        More sockets, each of a user whose word is taken for who asks.

    Attributes
    ----------
    look
        Called before each answer; it raises, or ends the process, if what is known
        here may not be so any more.
    """

    def __init__(
        self,
        path: Path,
        longest: int = LARGEST_REQUEST,
        most: int = MOST,
        doors: Mapping[Path, Believed] | None = None,
    ) -> None:
        self.path = path
        self.look: Callable[[], None] = lambda: None
        self._doors = dict(doors or {})
        self._inboxes = Inboxes(longest, most)
        self._piece = min(PIECE, longest)
        self._servers: dict[Path, asyncio.Server] = {}
        self._clients: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._under_way: set[asyncio.Task[Any]] = set()

    @abstractmethod
    def read(self, name: str, args: list[Any]) -> Request:
        """Return what a method is asked for with its arguments.

        Raises
        ------
        BadInput
            If there is no such method, or its arguments are off.
        """

    @abstractmethod
    async def answer(self, wanted: Request, gone: asyncio.Task[Any]) -> bytes:
        """Return the answer to a request.

        Parameters
        ----------
        gone
            Reads what the client says next; what only waits is over when it is done.

        Raises
        ------
        GoneError
            If the client is gone, and nobody waits any more.
        MoorageError
            If that is what whoever asks is to be told.
        """

    @abstractmethod
    async def line(self, wanted: ConnectInstance) -> tuple[dict[str, Any], Line]:
        """Open a line to a guest; what is returned first is told to the client.

        Raises
        ------
        MoorageError
            If there is none.
        """

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        WrongState
            If another master listens there.
        Failed
            If the socket cannot be made.
        """
        await self._listen(self.path, None)
        for path, believed in self._doors.items():
            await self._listen(path, believed)

    async def _listen(self, path: Path, believed: Believed | None) -> None:
        self._servers[path] = await asyncio.start_unix_server(
            partial(self._client, believed),
            sock=_bound(path, believed),
            limit=self._piece,
            backlog=_BACKLOG,
        )

    async def stop(self) -> None:
        """Stop listening, and hang up on every client, were it in mid-sentence."""
        servers, self._servers = self._servers, {}
        for one in servers.values():
            one.close()
        await self._hang_up()
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=_FAREWELL)
            for request in late:
                request.cancel()
        for path, one in servers.items():
            await one.wait_closed()
            path.unlink(missing_ok=True)

    async def _hang_up(self) -> None:
        """Let clients read what they were told; who does not is waited for no more."""
        for client in self._clients:
            client.cancel()
        if self._clients:
            await asyncio.wait(self._clients, timeout=_FAREWELL)
        for writer in self._clients.values():
            writer.transport.abort()
        if self._clients:
            await asyncio.wait(self._clients, timeout=_FAREWELL)

    async def _client(
        self,
        believed: Believed | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._clients[task] = writer
            task.add_done_callback(self._clients.pop)
        inbox = self._inboxes.open(reader)
        try:
            uid, caller = peer(writer)
            CALLER.set(caller)
            _BELIEVED.set(believed)
            if believed and uid != believed.uid:
                refused = Forbidden(f"{caller.name} is not the user of this socket")
                await self._send(writer, encode_error(refused))
                return
            await self._serve(inbox, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the master does: nobody is left to tell
        finally:
            self._inboxes.close(inbox)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(
        self, inbox: Inbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request after the other; read the next one meanwhile."""
        reading = asyncio.create_task(inbox.next())
        try:
            while True:
                request = await reading
                if request is None:
                    return
                if isinstance(request, MoorageError):
                    await self._send(writer, encode_error(request))
                    await inbox.pour_away()
                    return
                wanted = self._wanted(request)
                if isinstance(wanted, ConnectInstance):
                    await self._carry(request, wanted, reader, writer)
                    return
                reading = asyncio.create_task(inbox.next())
                await self._send(writer, await self._answer(request, wanted, reading))
                inbox.answered()
        finally:
            reading.cancel()

    async def _send(self, writer: asyncio.StreamWriter, answer: bytes) -> None:
        self.look()
        writer.write(answer)
        await writer.drain()

    async def _carry(
        self,
        request: bytes,
        wanted: ConnectInstance,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Hand the connection over to a guest."""
        try:
            _admit(request, wanted)
            told, line = await self.line(wanted)
        except StoreLost as lost:
            await self._send(writer, encode_error(_lost(lost)))
            return
        except Exception as error:  # noqa: BLE001
            await self._send(writer, encode_error(sentence(error)))
            return
        where = f"{told['instance']} on {told['node']}"
        with traced(wanted.kind, where, CALLER.get().detail):
            await carry(StreamLine(reader, writer), line, encode_result(told))

    def _wanted(self, request: bytes) -> Request | MoorageError:
        """Return what a request asks for; or why it asks for nothing."""
        try:
            name, args = decode_request(request)
            check_texts(args)
            return self.read(name, args)
        except RecursionError:
            return BadInput("the request is nested too deep")
        except Exception as error:  # noqa: BLE001
            return sentence(error)

    async def _answer(
        self, request: bytes, wanted: Request | MoorageError, gone: asyncio.Task[Any]
    ) -> bytes:
        """Return the answer to a request, whatever it holds."""
        if isinstance(wanted, MoorageError):
            return encode_error(wanted)
        try:
            _admit(request, wanted)
            return await self.answer(wanted, gone)
        except GoneError:
            raise
        except StoreLost as lost:
            return encode_error(_lost(lost))
        except RecursionError:
            return encode_error(BadInput("the request is nested too deep"))
        except Exception as error:  # noqa: BLE001
            return encode_error(sentence(error))


def _admit(request: bytes, wanted: Request) -> None:
    """Take note of who asks; raise `Forbidden` if that one may not."""
    believed, words = _BELIEVED.get(), decode_caller(request)
    if believed:
        CALLER.set(said(believed, words))
    elif words is not None:
        raise Forbidden(
            "at this socket everybody asks for themselves, and not for somebody else"
        )
    caller = CALLER.get()
    if not caller.may(wanted.role):
        raise Forbidden(
            f"{caller} has the role {caller.role.word}: {type(wanted).__name__} takes "
            f"{wanted.role.word}",
            role=wanted.role.word,
        )


def _lost(lost: StoreLost) -> MoorageError:
    """Return what whoever asked for a change is told: nobody knows what came of it."""
    return Failed(
        f"the master ends, and commits nothing more: {lost}; what you asked for may "
        "have been taken or not",
        hint="gnt-job list, when the master is back",
    )


def _bound(path: Path, believed: Believed | None) -> socket.socket:
    """Return a socket that listens at `path`, with its mode from its first moment.

    Whoever sees the file can connect: it gets its name when it listens already. Its
    owner may, and a door of another user by the group of its directory.
    """
    other = believed and believed.uid != os.geteuid()
    _check_free(path)
    draft = path.with_name(f".{path.name}")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117 if other else 0o177)
    try:
        draft.unlink(missing_ok=True)
        made.bind(str(draft))
        made.listen(_BACKLOG)
        draft.rename(path)
    except OSError as error:
        made.close()
        why = error.strerror or error
        raise Failed(f"the socket {path} cannot be made: {why}") from error
    finally:
        os.umask(before)
    return made


def _check_free(path: Path) -> None:
    """Raise `WrongState` if somebody answers at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(path))
        except OSError:
            return
    raise WrongState(f"another master listens on {path}", hint="gnt-cluster getmaster")
