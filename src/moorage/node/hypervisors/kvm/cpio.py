# SPDX-License-Identifier: BSD-2-Clause
"""The archive format of an initramfs ("newc"), written without any tool."""

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_DIRECTORY = stat.S_IFDIR | 0o755
_PROGRAM = stat.S_IFREG | 0o755
_FILE = stat.S_IFREG | 0o644


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the archive; `device` is the major and minor number."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> Entry:
    """Return an empty directory."""
    return Entry(name, _DIRECTORY)


def program(name: str, data: bytes) -> Entry:
    """Return an executable file."""
    return Entry(name, _PROGRAM, data)


def plain(name: str, data: bytes) -> Entry:
    """Return a file."""
    return Entry(name, _FILE, data)


def link(name: str, to: str) -> Entry:
    """Return a symbolic link."""
    return Entry(name, stat.S_IFLNK | 0o777, to.encode())


def console() -> Entry:
    """Return the device that the kernel opens for init."""
    return Entry("dev/console", stat.S_IFCHR | 0o600, b"", (5, 1))


def archive(entries: Iterable[Entry]) -> bytes:
    """Return the archive of `entries`; directories come before what they hold."""
    everything = [*entries, Entry("TRAILER!!!", 0)]
    return b"".join(
        _packed(number, entry) for number, entry in enumerate(everything, 1)
    )


def _packed(number: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    fields = (
        *(number, entry.mode, 0, 0, 1, 0, len(entry.data)),
        *(0, 0, *entry.device, len(name), 0),
    )
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
