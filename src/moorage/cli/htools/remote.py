# SPDX-License-Identifier: BSD-2-Clause
"""Clusters over a connection: RAPI (or its answers in files), and LUXI."""

import json
import os
import ssl
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from moorage.api.luxi import LuxiClient
from moorage.cli.environment import socket_path
from moorage.errors import NotFound, Unreachable
from moorage.htools.fleet import Fleet
from moorage.htools.formats import luxi as luxi_format
from moorage.htools.formats import rapi as rapi_format

PORT: Final = 5080
TIMEOUT: Final = 60.0
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
    MoorageError
        If nobody listens there, or an answer is off.
    """
    with connect(path) as link:
        answers = {
            name: json.dumps(link.call(method, *args))
            for name, (method, args) in luxi_format.CALLS.items()
        }
    return luxi_format.parse(answers)


def connect(path: str) -> LuxiClient:
    """Return a connection to the master; an empty path is the usual socket."""
    return LuxiClient(path or socket_path(os.environ))
