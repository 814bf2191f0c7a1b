# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance console: a terminal and a serial line."""

import os
import socket
import tempfile
import threading

import pytest

from moorage.cli.gnt_instance.console import connect
from moorage.errors import Unreachable


def test_console_show(master, typed) -> None:
    master.result = {"socket": "/run/moorage/web1.serial", "node": "node1"}
    out = typed("gnt-instance console --show web1").out
    assert out == "socket: /run/moorage/web1.serial on node1\n"
    master.result = {"command": ["socat", "-", "UNIX:x"]}
    for option in ("--show", "--show-cmd", "--show-command"):
        told = typed(f"gnt-instance console {option} web1").out
        assert told == "socat - UNIX:x\n"
    master.result = {}
    assert "has no console" in typed("gnt-instance console web1").err


def test_console_carries_bytes_until_the_key_that_leaves() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/serial"
        heard = bytearray()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen()

        def guest() -> None:
            link, _ = listener.accept()
            with link:
                link.sendall(b"login: ")
                while data := link.recv(100):
                    heard.extend(data)

        thread = threading.Thread(target=guest)
        thread.start()
        stdin, keys = os.pipe()
        screen, stdout = os.pipe()
        with os.fdopen(screen, "rb", 0) as shown:
            person = threading.Thread(
                target=lambda: (shown.read(7), os.write(keys, b"root\r\x1dlost"))
            )
            person.start()
            connect(path, stdin, stdout)
            person.join()
        thread.join()
        listener.close()
        for end in (stdin, keys, stdout):
            os.close(end)
        assert heard == b"root\r"


def test_console_of_nothing() -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        connect("/nonexistent/serial", 0, 1)
