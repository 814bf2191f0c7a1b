# SPDX-License-Identifier: BSD-2-Clause
"""Files that people hand over: read whole, but neither endlessly nor forever."""

import os
import stat
import sys
from typing import Final

from moorage.errors import BadInput, NotFound

LARGEST_FILE: Final = 64 * 2**20
"""Bytes; a cluster of 10,000 instances has about two million."""
PATIENCE: Final = 10.0
"""Seconds to wait until somebody opens the other end of a FIFO."""

STOP_CHECK = """#!/bin/sh

# Auto-generated script for executing cluster rebalancing

# To stop, touch the file /tmp/stop-htools

set -e

check() {
  if [ -f /tmp/stop-htools ]; then
    echo 'Stop requested, exiting'
    exit 0
  fi
}

"""
"""How a script of jobs begins: it stops where somebody asks it to."""


def read_text(path: str) -> str:
    """Return the text of a file; ``-`` is the standard input.

    Raises
    ------
    NotFound
        If it cannot be read.
    BadInput
        If it is too long, or not UTF-8, with the place where that begins.
    """
    try:
        data = _read(path)
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > LARGEST_FILE:
        line = data.count(b"\n", 0, LARGEST_FILE) + 1
        column = LARGEST_FILE - data.rfind(b"\n", 0, LARGEST_FILE)
        raise BadInput(
            f"{path}: line {line}, column {column}: the file is larger than "
            f"{LARGEST_FILE >> 20} MiB"
        )
    return decoded(data, path)


def decoded(data: bytes, name: str) -> str:
    """Return bytes as text, or say where they stop being UTF-8 (column in bytes)."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        raise BadInput(
            f"{name}: line {line}, column {column}: not UTF-8 text"
        ) from error


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read(LARGEST_FILE + 1)
    # No pathlib here: what it loads is a tenth of a small program's time.
    if stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116
        return _from_fifo(path)
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read(LARGEST_FILE + 1)


def _from_fifo(path: str) -> bytes:
    """Read a FIFO once somebody writes to it; to open it plainly might never end."""
    import select  # noqa: PLC0415 - rare

    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
        waiting = select.poll()
        waiting.register(file, select.POLLIN)
        if not waiting.poll(PATIENCE * 1000) and not _has_writer(file.fileno()):
            raise OSError(f"nobody writes to it (waited {PATIENCE:g} s)")
        os.set_blocking(file.fileno(), True)
        return file.read(LARGEST_FILE + 1)


def _has_writer(descriptor: int) -> bool:
    """Say whether an empty FIFO is open for writing."""
    try:
        return os.read(descriptor, 1) != b""
    except BlockingIOError:
        return True
