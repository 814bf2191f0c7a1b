# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's framing, and the blocking client that the commands use.

It imports the standard library alone, because a command's start-up is what a person
waits for.
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from moorage.directories import MASTER_DIR
from moorage.errors import BadInput, NoMaster, Unreachable

from .luxi_messages import END, decode_answer, encode_request

LARGEST_ANSWER = 256 * 1024 * 1024
"""Bytes after which a message without an end is taken for a broken peer."""
ANSWER_TIMEOUT = 180.0
CHANGE_TIMEOUT = 85.0
"""Longest wait for a job's change, in seconds; Ganeti's limit is 89."""
_LITTLE = 1 << 20
"""Bytes; with less than this a file system counts as full."""
_ABOVE_ALL = 1 << 53
"""Above the number of any log entry, and exact in any reader of JSON."""
NOCHANGE = "nochange"
"""What ``WaitForJobChange`` returns when the time is over."""


class Splitter:
    """Cuts a stream of bytes into messages, however it arrives.

    Parameters
    ----------
    longest
        Bytes that a message may have.

    >>> Splitter().feed(b'1' + END + b'2' + END + b'3')
    [b'1', b'2']
    """

    def __init__(self, longest: int = LARGEST_ANSWER) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes.

        Raises
        ------
        BadInput
            If a message grows too long.
        """
        *ends, rest = data.split(END)
        messages = []
        for end in ends:
            messages.append(b"".join([*self._pieces, end]))
            self._pieces, self._held = [], 0
        if rest:
            self._hold(rest)
        return messages

    def _hold(self, rest: bytes) -> None:
        self._pieces.append(rest)
        self._held += len(rest)
        if self._held > self._longest:
            raise BadInput(f"a message of more than {self._longest} bytes has no end")


class LuxiClient:
    """A blocking client: one request at a time, in order.

    Parameters
    ----------
    path
        The master's socket.
    timeout
        Longest wait for an answer, in seconds.
    other
        The socket of who knows the master, for when there is none; empty for nobody.
    """

    def __init__(
        self, path: str, timeout: float = ANSWER_TIMEOUT, *, other: str = ""
    ) -> None:
        self.path = path
        self._other = other
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._splitter = Splitter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the number of the socket's descriptor; -1 where there is none."""
        return self._socket.fileno() if self._socket else -1

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._splitter = Splitter()

    def call(self, method: str, *args: Any) -> Any:  # noqa: ANN401
        """Return the result of a method.

        Raises
        ------
        MoorageError
            The one that the master raised.
        NoMaster
            If nothing listens on the socket.
        Unreachable
            If the master went away before it answered, or took too long.
        """
        if self._socket is None:
            self._socket = self._connect()
        try:
            self._socket.sendall(encode_request(method, args))
            message = self._receive(self._socket)
        except OSError as error:
            self.close()
            raise _broken(error, self._timeout) from error
        except BaseException:
            # An answer may still be on its way: the next call must not read it.
            self.close()
            raise
        return decode_answer(message)

    def line(self, *args: Any) -> tuple[Any, socket.socket, bytes]:  # noqa: ANN401
        """Open a line to a guest (``ConnectInstance``).

        Returns what is told of it, the connection, which is the guest's from now on,
        and what came of it already. Raises as :meth:`call` does.
        """
        link = self._connect()
        try:
            link.sendall(encode_request("ConnectInstance", args))
            message, rest = _until_end(link)
            answer = decode_answer(message)
        except OSError as error:
            link.close()
            raise _broken(error, self._timeout) from error
        except BaseException:
            link.close()
            raise
        link.settimeout(None)
        return answer, link, rest

    def _connect(self) -> socket.socket:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(self._timeout)
        try:
            link.connect(self.path)
        except OSError as error:
            if self._other and not link.connect_ex(self._other):
                return link
            link.close()
            raise _absent(self.path, error) from error
        return link

    def _receive(self, link: socket.socket) -> bytes:
        while data := link.recv(1 << 20):
            for message in self._splitter.feed(data):
                return message
        raise ConnectionError("the master closed the connection")

    # Methods, by Ganeti's names in this language's spelling.

    def submit_job(self, ops: Sequence[Mapping[str, Any]]) -> int:
        """Submit one job of some operations; return its number."""
        return int(self.call("SubmitJob", list(ops)))

    def submit_many_jobs(
        self, jobs: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[tuple[bool, Any]]:
        """Submit jobs; return for each whether it was taken, and its number or why."""
        answer = self.call("SubmitManyJobs", [list(ops) for ops in jobs])
        return [(bool(taken), what) for taken, what in answer]

    def wait_for_job_change(
        self,
        job: int,
        fields: Sequence[str],
        seen: tuple[Sequence[Any] | None, int | None],
        timeout: float = CHANGE_TIMEOUT,
    ) -> Any:  # noqa: ANN401
        """Wait until a job differs from what was `seen` of it.

        Parameters
        ----------
        seen
            Values of the fields, and serial number of the last log entry; None if no
            entry matters, else a job that has one would be news at once, every time.

        Returns
        -------
        Any
            ``[values, log entries]``, :data:`NOCHANGE`, or None for no such job.
        """
        values, serial = seen
        after = _ABOVE_ALL if serial is None else serial
        return self.call("WaitForJobChange", job, list(fields), values, after, timeout)

    def query(
        self, what: str, fields: Sequence[str], qfilter: list[Any] | None = None
    ) -> tuple[list[dict[str, Any]], list[list[tuple[int, Any]]]]:
        """Return the definitions of the fields, and rows of (status, value)."""
        answer = self.call("Query", what, list(fields), qfilter)
        rows = [[(status, value) for status, value in row] for row in answer["data"]]
        return answer["fields"], rows

    def query_fields(
        self, what: str, fields: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the definitions of some fields of a resource, or of all."""
        answer = self.call("QueryFields", what, list(fields) if fields else None)
        found: list[dict[str, Any]] = answer["fields"]
        return found

    def query_jobs(
        self, jobs: Sequence[int] | None, fields: Sequence[str]
    ) -> Iterator[list[Any] | None]:
        """Yield the fields' values of each job; None for one that is not known."""
        wanted = None if jobs is None else list(jobs)
        if wanted != []:  # which means all jobs on the wire, as in Ganeti
            yield from self.call("QueryJobs", wanted, list(fields))


def _until_end(link: socket.socket) -> tuple[bytes, bytes]:
    """Return a message, and what came behind its end, which may be anything."""
    came = b""
    while END not in came:
        data = link.recv(1 << 16)
        if not data:
            raise ConnectionError("the master closed the connection")
        came += data
    message, _, rest = came.partition(END)
    return message, rest


def _absent(path: str, error: OSError) -> NoMaster:
    if isinstance(error, PermissionError):
        return NoMaster(
            f"you may not use the master's socket {path}",
            hint="run the command as root",
        )
    full = _full(path)
    if full:
        return NoMaster(
            f"no master listens on {path}, and the file system of {full} is full: it "
            "starts again when there is room",
            hint=f"make room in {full}; then, if need be: moorage master start",
        )
    if os.path.exists(f"{os.path.dirname(path)}/state.sqlite"):  # noqa: PTH110, PTH120 - pathlib is slow to import
        return NoMaster(f"no master listens on {path}", hint="moorage master start")
    return NoMaster(
        f"no master listens on {path}",
        hint="moorage up DIR starts a cluster, gnt-cluster init NAME makes one "
        "here; MOORAGE_SOCKET names the socket of another",
    )


def _full(path: str) -> str:
    """Return the master's directory, if there is one and its file system is full."""
    places = (os.environ.get("MOORAGE_DIR"), os.path.dirname(path), MASTER_DIR)  # noqa: PTH120
    for place in filter(None, places):
        try:
            os.stat(f"{place}/state.sqlite")  # noqa: PTH116
            found = os.statvfs(place)
        except OSError:
            continue
        return place if found.f_bavail * found.f_frsize < _LITTLE else ""
    return ""


def _broken(error: OSError, timeout: float) -> Unreachable:
    took = f"no answer in {timeout:g} s" if isinstance(error, TimeoutError) else error
    return Unreachable(
        f"the connection to the master broke: {took}",
        hint="gnt-job list shows whether the request became a job",
        lost="master",
    )
