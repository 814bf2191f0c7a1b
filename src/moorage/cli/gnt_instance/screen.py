# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance console --vnc: a guest's screen for a viewer on this machine.

Anybody on this machine can reach the port. So VNC asks for a ticket that is drawn for
this call, and good for the two minutes after each connection.
"""

import secrets
import socket
import string
import threading
from contextlib import suppress

from moorage.cli.command import Call
from moorage.errors import BadInput, MoorageError

_HERE = "127.0.0.1"
_LENGTH = 8
"""Characters of a password that VNC looks at."""
_PORTS = 1 << 16


def serve(call: Call, name: str, port: int) -> int:
    """Serve the screen of an instance until somebody presses Ctrl-C.

    Raises
    ------
    BadInput
        If the port is none, or taken.
    MoorageError
        If the instance has no screen, or cannot be reached.
    """
    ticket = "".join(
        secrets.choice(string.ascii_letters + string.digits) for _ in range(_LENGTH)
    )
    told, first, _ = call.socket.line(name, "vnc", ticket)
    first.close()  # it was to see whether there is one
    with _listening(port) as listener:
        _tell(call, told, listener.getsockname()[1], ticket)
        while True:
            viewer, _ = listener.accept()
            try:
                _, link, came = call.socket.line(name, "vnc", ticket)
            except MoorageError as error:
                viewer.close()
                call.terminal.talk(error.message)
                continue
            viewer.sendall(came)
            for one, other in ((viewer, link), (link, viewer)):
                threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _listening(port: int) -> socket.socket:
    if not 0 <= port < _PORTS:
        raise BadInput(f"there is no port {port}")
    try:
        return socket.create_server((_HERE, port))
    except OSError as error:
        raise BadInput(f"port {port} cannot be had: {error.strerror}") from None


def _tell(call: Call, told: dict[str, object], port: int, ticket: str) -> None:
    password = ticket if told.get("by_ticket") else "the one in its vnc_password_file"
    call.terminal.print(f"Address: {_HERE}::{port}")
    call.terminal.print(f"Password: {password}")
    call.terminal.out.flush()
    call.terminal.talk(
        f"The screen of {told['instance']} is there for a VNC viewer, as in: vncviewer "
        f"{_HERE}::{port}; Ctrl-C ends"
    )


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
