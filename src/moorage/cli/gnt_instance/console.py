# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance console: the guest's serial line on this terminal."""

import os
import select
import socket
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import fetch
from moorage.cli.options import DEBUG, moot
from moorage.errors import NotSupported, Unreachable

LEAVE = b"\x1d"
"""Ctrl-]"""


def console(call: Call) -> int:
    """Connect this terminal to a guest's serial line."""
    (name,) = call.words
    found = fetch(call, "OP_INSTANCE_CONSOLE", instance_name=name)
    if call.option("show_cmd"):
        call.terminal.print(shown(found))
    elif found.get("command"):
        command = found["command"]
        argv = command if isinstance(command, list) else ["/bin/sh", "-c", command]
        os.execvp(argv[0], argv)  # noqa: S606 - the master's own command
    elif found.get("socket"):
        call.terminal.talk(f"Connected to {name}; Ctrl-] leaves")
        connect(str(found["socket"]), sys.stdin.fileno(), sys.stdout.fileno())
        call.terminal.talk("")
    else:
        raise NotSupported(f"instance {name} has no console")
    return 0


def shown(found: dict[str, object]) -> str:
    """Return what would be run."""
    command = found.get("command")
    if isinstance(command, list):
        return " ".join(map(str, command))
    return str(command or f"socket: {found.get('socket')} on {found.get('node')}")


def connect(path: str, stdin: int, stdout: int) -> None:
    """Carry bytes between the terminal and a socket until either ends.

    Raises
    ------
    Unreachable
        If nothing listens on the socket.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(path)
        except OSError as error:
            raise Unreachable(
                f"the console {path} cannot be reached: {error.strerror}",
                hint="gnt-instance list -o name,pnode,status shows where it runs",
            ) from error
        with _raw(stdin):
            _carry(line, stdin, stdout)


def _carry(line: socket.socket, stdin: int, stdout: int) -> None:
    while True:
        ready, _, _ = select.select([line.fileno(), stdin], [], [])
        if line.fileno() in ready:
            data = line.recv(4096)
            if not data:
                return
            os.write(stdout, data)
        if stdin in ready:
            typed = os.read(stdin, 4096)
            before, left, _ = typed.partition(LEAVE)
            line.sendall(before)
            if left or not typed:
                return


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


COMMAND = Command(
    "console",
    console,
    "Connect to an instance's serial console; Ctrl-] leaves",
    (Operand("INSTANCE"),),
    (
        Option(
            ("--show", "--show-command", "--show-cmd"),
            "print what would be run, do not run it",
        ),
        moot("--priority", "it waits for nobody", "PRIORITY"),
        DEBUG,
    ),
    examples=(Example("gnt-instance console web1", "type to the guest"),),
)
