# SPDX-License-Identifier: BSD-2-Clause
"""Peers that answer whatever they were told to, sense or nonsense."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final, Self

END: Final = b"\x03"
Reply = Callable[[bytes], bytes | Iterator[bytes]]
"""What to answer to a request, at once or in pieces; nothing closes the connection."""


class Peer:
    """A socket with somebody behind it, for the time of a ``with`` block.

    Parameters
    ----------
    family, address
        Where it listens; see :mod:`socket`.
    ends
        How a request ends.
    reply
        What it answers.
    """

    def __init__(
        self,
        family: socket.AddressFamily,
        address: tuple[str, int] | str,
        ends: bytes,
        reply: Reply,
    ) -> None:
        self.ends, self.reply = ends, reply
        self.stopped = threading.Event()
        self.socket = socket.socket(family)
        self.where = address
        self.thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def address(self) -> str:
        """Where it listens, as programs take it."""
        name = self.socket.getsockname()
        return name if isinstance(name, str) else f"http://{name[0]}:{name[1]}"

    def __enter__(self) -> Self:
        """Start to answer."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind(self.where)
        except OSError:
            self.socket.close()
            raise
        self.socket.listen()
        self.thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop, and wait until it has stopped."""
        self.stopped.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.socket.close()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            with link:
                self._talk(link)

    def _talk(self, link: socket.socket) -> None:
        rest = b""
        try:
            while more := link.recv(65536):
                *whole, rest = (rest + more).split(self.ends)
                for request in whole:
                    answer = self.reply(request)
                    for piece in [answer] if isinstance(answer, bytes) else answer:
                        link.sendall(piece)
                    if not answer or self.ends != END:
                        return
        except OSError:
            return  # the program went away, as it may


def http(reply: Reply, host: str, port: int = 0) -> Peer:
    """Return a web server; it answers one request for each connection."""
    return Peer(socket.AF_INET, (host, port), b"\r\n\r\n", reply)


def luxi(path: str, reply: Reply) -> Peer:
    """Return a master."""
    return Peer(socket.AF_UNIX, path, END, reply)


def ok(body: str) -> bytes:
    """Return a web server's answer with a body."""
    data = body.encode("utf-8", "surrogatepass")
    head = (
        f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def result(text: str) -> bytes:
    """Return a master's answer with a result that is JSON already."""
    return f'{{"success": true, "result": {text}}}'.encode("utf-8", "replace") + END


def method(request: bytes) -> tuple[str, str]:
    """Return the method of a request to a master, and its first argument."""
    asked = json.loads(request)
    return asked["method"], str((asked["args"] or [""])[0])
