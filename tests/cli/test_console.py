# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance console: a terminal and a line to a guest."""

import os
import socket
import threading
from typing import Any

from moorage.api.luxi_messages import END, encode_result
from moorage.cli.gnt_instance.console import connect


def told(**more: Any) -> Any:
    about = {"kind": "ssh", "user": "root", "host": "node1", "port": 15007} | more
    row = [[0, "web1"], [0, "node1"], [0, True], [0, about]]
    return {"fields": [], "data": [row]}


def test_console_shows_what_another_program_would_run(master: Any, typed: Any) -> None:
    words = ["gnt-instance", "console", "web1"]
    master.answers["Query"] = told(command=words)
    master.answers["DrawTicket"] = {"ticket": "abc", "lasts": 120}
    for option in ("--show", "--show-cmd", "--show-command"):
        shown = typed(f"gnt-instance console {option} web1")
        assert shown.out == "MOORAGE_TICKET=abc gnt-instance console web1\n"
        assert "once, within 120 seconds, on any machine" in shown.err
    master.answers["Query"] = told(kind="vnc")
    shown = typed("gnt-instance console --show-cmd web1").out
    assert shown == "vncviewer node1::15007\n"
    said = typed("gnt-instance console --vnc --port x web1").err
    assert "'x' is not the number of a port" in said
    master.answers["Query"] = {"fields": [], "data": [[[0, "w"]] * 3 + [[3, None]]]}
    assert "not running" in typed("gnt-instance console --show-cmd web1").err


def test_console_carries_bytes_until_the_key_that_leaves() -> None:
    ours, guest = socket.socketpair()
    heard = bytearray()

    def listen() -> None:
        with guest:
            guest.sendall(b"login: ")
            while data := guest.recv(100):
                heard.extend(data)

    thread = threading.Thread(target=listen)
    thread.start()
    stdin, keys = os.pipe()
    screen, stdout = os.pipe()
    with os.fdopen(screen, "rb", 0) as shown, ours:
        said = b""

        def person() -> None:
            nonlocal said
            while len(said) < 13:
                said += shown.read(13 - len(said))
            os.write(keys, b"root\r\x1dlost")

        reader = threading.Thread(target=person)
        reader.start()
        assert connect(ours, b"hello\n", stdin, stdout)
        reader.join()
    thread.join()
    for end in (stdin, keys, stdout):
        os.close(end)
    assert said == b"hello\nlogin: "
    assert heard == b"root\r"


def test_what_a_guest_says_behind_the_answer_is_its_own() -> None:
    """A guest may say the byte that ends messages, in the same breath."""
    from moorage.api.luxi import _until_end  # noqa: PLC0415

    ours, master = socket.socketpair()
    with ours, master:
        master.sendall(encode_result({"node": "n"}) + b"boot" + END + b"ing")
        message, rest = _until_end(ours)
    assert b"node" in message
    assert rest == b"boot" + END + b"ing"


def test_a_line_that_ends_is_told() -> None:
    ours, guest = socket.socketpair()
    stdin, keys = os.pipe()
    guest.close()
    with ours:
        assert not connect(ours, b"", stdin, 1)
    os.close(stdin)
    os.close(keys)
