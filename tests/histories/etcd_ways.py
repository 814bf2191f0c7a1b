# SPDX-License-Identifier: BSD-2-Clause
"""A master's ways to the members of etcd, which can be cut without a word to either."""

import socket
import threading
from contextlib import suppress

from support.ports import free_port


class Way:
    """A port of this machine that leads to another one."""

    def __init__(self, behind: int) -> None:
        self.port = free_port()
        self._behind = behind
        self._open = threading.Event()
        self._open.set()
        self._links: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """Let nothing through, and tell nobody."""
        self._open.clear()

    def mend(self) -> None:
        """Let through again; what was open before is over."""
        self._hang_up()
        self._open.set()

    def close(self) -> None:
        """Serve no more."""
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.mend()

    def _hang_up(self) -> None:
        links, self._links = self._links, []
        for link in links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                self._links.append(near)
                try:
                    far = socket.create_connection(("127.0.0.1", self._behind))
                except OSError:
                    near.close()
                    continue
                self._links.append(far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._open.wait()
                target.sendall(data)
        for link in (source, target):
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
