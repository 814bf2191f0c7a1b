# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance console: the guest's serial line on this terminal, or its screen.

The bytes come through the master and the agent of the guest's node; no job is made.
"""

import os
import select
import shlex
import socket
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.option_syntax import number
from moorage.cli.options import DEBUG, moot
from moorage.errors import BadInput

from . import screen

LEAVE = b"\x1d"
"""Ctrl-]"""
_TICKET = "MOORAGE_TICKET"
_FIELDS = ("name", "pnode", "oper_state", "console")


def _console(call: Call) -> int:
    (name,) = call.words
    if call.option("show_cmd"):
        call.terminal.print(_shown(call, name))
        return 0
    if call.option("vnc"):
        return screen.serve(call, name, call.option("port") or 0)
    if call.option("port"):
        raise BadInput("--port is for --vnc")
    if word := call.terminal.environ.get(_TICKET):
        return _by_ticket(call, name, word)
    ended = _talk(call, name)
    while ended and (now := _moved(call, *ended)):
        call.terminal.talk(f"{ended[0]} runs on {now} by now")
        ended = _talk(call, name)
    return 0


def _shown(call: Call, name: str) -> str:
    """Return what another program, or a person, would do for the same."""
    _, rows = call.client.query("instance", _FIELDS, ["==", "name", name])
    ((_, told),) = [row[-1] for row in rows]
    if not isinstance(told, dict):
        raise BadInput(f"instance {name} is not running: it has no console")
    if told["kind"] == "vnc":
        return f"vncviewer {told['host']}::{told['port']}"
    if told["kind"] != "ssh":
        return str(told["message"])
    with call.socket as link:
        drawn = link.call("DrawTicket", name)
    call.terminal.talk(
        f"It opens the console once, within {drawn['lasts']} seconds, on any machine "
        "of the cluster that has these programs"
    )
    return f"{_TICKET}={drawn['ticket']} {shlex.join(told['command'])}"


def _by_ticket(call: Call, name: str, word: str) -> int:
    """Connect to the console that a ticket opens, without a master."""
    from . import ticket  # noqa: PLC0415 - TLS is slow to import

    link, told = ticket.connect(word, name)
    with link:
        call.terminal.talk(f"Connected to {told}; Ctrl-] leaves")
        left = connect(link, b"", sys.stdin.fileno(), sys.stdout.fileno())
    call.terminal.talk("" if left else f"\r\nThe line to {told} has ended")
    return 0


def _talk(call: Call, name: str) -> tuple[str, str] | None:
    """Connect until somebody leaves; return which guest hung up, and its node."""
    told, link, came = call.socket.line(name)
    with link:
        call.terminal.talk(f"Connected to {told['instance']}; Ctrl-] leaves")
        left = connect(link, came, sys.stdin.fileno(), sys.stdout.fileno())
    call.terminal.talk("")
    return None if left else (told["instance"], told["node"])


def _moved(call: Call, name: str, node: str) -> str:
    """Return where a guest is whose line ended, if that is elsewhere; or say so."""
    _, rows = call.client.query("instance", _FIELDS[:3], ["==", "name", name])
    for (_, known), (_, now), (_, runs) in rows:
        if runs and now != node:
            return str(now)
        call.terminal.talk(
            f"The line to {known} on {now} has ended"
            + ("" if runs else ": the guest is not running")
        )
    return ""


def connect(link: socket.socket, came: bytes, stdin: int, stdout: int) -> bool:
    """Carry bytes between the terminal and a line until either ends.

    Parameters
    ----------
    came
        What the line has said already.

    Returns
    -------
    bool
        Whether somebody left; if not, the line has ended.
    """
    with _raw(stdin):
        _show(stdout, came)
        while True:
            ready, _, _ = select.select([link.fileno(), stdin], [], [])
            if link.fileno() in ready:
                data = _heard(link)
                if not data:
                    return False
                _show(stdout, data)
            if stdin in ready:
                typed = os.read(stdin, 4096)
                before, left, _ = typed.partition(LEAVE)
                link.sendall(before)
                if left or not typed:
                    return True


def _heard(link: socket.socket) -> bytes:
    try:
        return link.recv(1 << 16)
    except ConnectionError:
        return b""


def _show(stdout: int, data: bytes) -> None:
    while data:
        data = data[os.write(stdout, data) :]


@contextmanager
def _raw(stdin: int) -> Iterator[None]:
    """Hand every key to the guest, while inside."""
    if not os.isatty(stdin):
        yield
        return
    before = termios.tcgetattr(stdin)
    try:
        tty.setraw(stdin)
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


COMMANDS = (
    Command(
        "console",
        _console,
        (Operand("INSTANCE"),),
        (
            Option(
                ("--show", "--show-command", "--show-cmd"),
                "print a command that opens it once, on any machine of the cluster",
            ),
            Option(("--vnc",), "serve its screen to a VNC viewer on this machine"),
            Option(
                ("--port",),
                "where --vnc listens; any free one if not given",
                "PORT",
                number("the number of a port"),
            ),
            moot("--priority", "it waits for nobody", "PRIORITY"),
            DEBUG,
        ),
        examples={
            "gnt-instance console web1": "type to the guest",
            "gnt-instance console --vnc web1": "look at its screen",
            "gnt-instance console --show-cmd web1": (
                "print what to type on another machine, within two minutes"
            ),
        },
        here="the door carries lines to guests for its page alone",
    ),
)
