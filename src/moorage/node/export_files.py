# SPDX-License-Identifier: BSD-2-Clause
"""The files of an export that is on its way: opened, read and written beside the loop.

Storage may let one wait for long, and nobody else is to wait with it.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from moorage.errors import Failed
from moorage.units import MIB

from .host import Parcel

T = TypeVar("T")


class Files(Protocol):
    """Opens the files that dumps are."""

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of a file that is there."""

    def create(self, path: str) -> int:
        """Return a descriptor, for writing, of an empty file."""


async def aside(work: Callable[[], T], let_go: Callable[[T], None] | None = None) -> T:
    """Do what may wait for storage in a thread, and let nobody close files under it.

    Parameters
    ----------
    let_go
        Gets what came of it when nobody waits for it any more.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if let_go and not task.cancelled() and not task.exception():
            let_go(task.result())
        raise


async def read(file: int, size: int, at: int) -> bytes:
    """Return so many bytes from a place of a file; fewer where it ends.

    Raises
    ------
    Failed
        If its storage says no.
    """
    try:
        return await aside(lambda: os.pread(file, size, at))
    except OSError as error:
        raise Failed(f"a dump cannot be read: {error.strerror}") from None


def write(file: int, piece: bytes, path: str, digest: "hashlib._Hash") -> None:
    """Write a piece at the end of what was written, and count it in the digest.

    Raises
    ------
    Failed
        If its storage says no.
    """
    digest.update(piece)
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}") from None


def check_room(file: int, size: int, path: str) -> None:
    """Raise `Failed` where an export would fill up what it is put on."""
    about = os.fstatvfs(file)
    free = about.f_bavail * about.f_frsize
    if free < size:
        raise Failed(
            f"{path} has no room: {size // MIB} MiB are to come, and {free // MIB} MiB "
            "are free"
        )


def opened(files: Files, parcels: Sequence[Parcel]) -> list[tuple[int, Parcel]]:
    """Return each file's descriptor; none is left open if one cannot be sent.

    Raises
    ------
    Failed
        If one is not as long as its manifest says.
    """
    found: list[tuple[int, Parcel]] = []
    try:
        for parcel in parcels:
            found.append((files.open(parcel.path, os.O_RDONLY), parcel))
            _check_length(found[-1][0], parcel)
    except BaseException:
        close(found)
        raise
    return found


def _check_length(file: int, parcel: Parcel) -> None:
    size = os.fstat(file).st_size
    if size != parcel.size:
        raise Failed(
            f"{parcel.path} has {size} bytes, and its manifest says {parcel.size}"
        )


def close(opened: list[tuple[int, Parcel]]) -> None:
    """Close what was opened, whatever its storage says."""
    for file, _ in opened:
        with suppress(OSError):
            os.close(file)
