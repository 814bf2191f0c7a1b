# SPDX-License-Identifier: BSD-2-Clause
"""Unix sockets at paths of any length.

The address of a Unix socket holds 107 bytes; a longer path is reached through a
descriptor of its directory.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.node.machine import proc

_LONGEST = 107
_BACKLOG = 16


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a name of `path` that fits into the address of a Unix socket."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH)
    try:
        yield f"{proc.descriptor(directory)}/{path.name}"
    finally:
        os.close(directory)


def listener(path: Path) -> socket.socket:
    """Return a socket that listens at `path`."""
    made = socket.socket(socket.AF_UNIX)
    with short_path(path) as name:
        made.bind(name)
    made.listen(_BACKLOG)
    return made
