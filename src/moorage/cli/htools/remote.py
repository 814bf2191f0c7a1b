# SPDX-License-Identifier: BSD-2-Clause
"""Clusters over a connection: RAPI (or its answers in files), and LUXI."""

import json
import socket
import ssl
from pathlib import Path
from typing import Any, Final, Self
from urllib.request import urlopen

from moorage.errors import NotFound, Unreachable
from moorage.htools.fleet import Fleet
from moorage.htools.formats import luxi as luxi_format
from moorage.htools.formats import rapi as rapi_format

PORT: Final = 5080
TIMEOUT: Final = 60.0
_EOM: Final = b"\x03"
_PATHS: Final = {
    "groups": "/2/groups?bulk=1",
    "nodes": "/2/nodes?bulk=1",
    "instances": "/2/instances?bulk=1",
    "info": "/2/info",
}


def rapi(address: str) -> Fleet:
    """Return the cluster that a RAPI server, or a folder ``file://DIR``, describes.

    Raises
    ------
    Unreachable, NotFound
        If there is no answer, or no file.
    BadInput
        If an answer is off, with its name, line and column.
    """
    folder = address.removeprefix("file://")
    answers = {
        name: _file(Path(folder) / f"{name}.json")
        if folder != address
        else _fetch(address, path)
        for name, path in _PATHS.items()
    }
    return rapi_format.parse(answers)


def _file(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"cannot read {path}: {error}") from error


def _fetch(address: str, path: str) -> str:
    base = address if "://" in address else f"https://{address}"
    if base.count(":") < 2:
        base += f":{PORT}"
    context = ssl.create_default_context()
    # The cluster signs its own certificate.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urlopen(base + path, timeout=TIMEOUT, context=context) as answer:  # noqa: S310
            return str(answer.read().decode())
    except (OSError, ValueError) as error:
        raise Unreachable(f"no answer from {base}{path}: {error}") from error


def luxi(path: str) -> Fleet:
    """Return the cluster that the master's socket describes.

    Raises
    ------
    Unreachable
        If nobody listens there.
    BadInput
        If an answer is off.
    """
    with Luxi(path) as link:
        answers = {
            name: json.dumps(link.call(method, args))
            for name, (method, args) in luxi_format.CALLS.items()
        }
    return luxi_format.parse(answers)


class Luxi:
    """A connection to the master's socket: one JSON text per message.

    Raises
    ------
    Unreachable
        If the socket is not there or falls silent.
    """

    def __init__(self, path: str) -> None:
        self.path = path or "/var/run/ganeti/socket/ganeti-query"
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(TIMEOUT)
        self.rest = b""

    def __enter__(self) -> Self:
        """Connect."""
        try:
            self.link.connect(self.path)
        except OSError as error:
            self.link.close()
            raise Unreachable(f"nobody listens on {self.path}: {error}") from error
        return self

    def __exit__(self, *_error: object) -> None:
        """Hang up."""
        self.link.close()

    def call(self, method: str, args: list[Any]) -> Any:  # noqa: ANN401
        """Return the master's answer to a request."""
        message = json.dumps({"method": method, "args": args}).encode()
        try:
            self.link.sendall(message + _EOM)
            answer = json.loads(self._line())
        except (OSError, ValueError) as error:
            raise Unreachable(f"{self.path} gave no answer: {error}") from error
        if not answer.get("success"):
            raise Unreachable(f"{method} was refused: {answer.get('result')}")
        return answer["result"]

    def _line(self) -> bytes:
        while _EOM not in self.rest:
            more = self.link.recv(65536)
            if not more:
                raise OSError("the connection was closed")
            self.rest += more
        line, _, self.rest = self.rest.partition(_EOM)
        return line
