# SPDX-License-Identifier: BSD-2-Clause
"""What the agent opens for QEMU, which itself may open nothing.

QEMU gets descriptors: of image files, devices, sockets of storage daemons, kernels. So
it needs no right to any path, and what was looked at is what it gets.
"""

import fcntl
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Protocol

from moorage.errors import Failed
from moorage.node.hypervisors.base import Drive
from moorage.node.machine import proc
from moorage.node.machine.images import open_named
from moorage.node.machine.sockets import short_path
from moorage.storage.uri import Node

from . import blockdev, ceph
from .blockdev import Data

_PATIENCE = 5.0
"""Seconds for a storage daemon to accept a connection."""


class Images(Protocol):
    """Opens image files, in the directories that the node allows."""

    def allows(self, path: str) -> bool:
        """Whether a path lies in one of them."""

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of a regular file; raise `Failed` if it is not one."""


def _cannot(path: str, error: OSError) -> Failed:
    return Failed(f"{path} cannot be opened: {error.strerror or error}", path=path)


@dataclass(slots=True)
class Opened:
    """A drive's data, open; to be closed once QEMU has them.

    Attributes
    ----------
    data
        The options of the block node that reaches them.
    sets
        Descriptors of files and devices, by the number of their set in QEMU.
    connections
        Connections to storage daemons, by the name that QEMU is to know.
    texts
        Descriptors of what QEMU's libraries open by its path below ``/proc``.
    """

    data: Data = field(default_factory=Data)
    sets: dict[int, int] = field(default_factory=dict)
    connections: dict[str, int] = field(default_factory=dict)
    texts: list[int] = field(default_factory=list)

    def descriptors(self) -> Iterator[int]:
        """Yield all of them."""
        yield from self.sets.values()
        yield from self.connections.values()
        yield from self.texts

    def wipe(self) -> None:
        """Empty the texts, which may hold keys; QEMU has read them."""
        for text in self.texts:
            ceph.wipe(text)

    def close(self) -> None:
        """Close all of them."""
        self.wipe()
        for one in self.descriptors():
            os.close(one)


def opened(
    drive: Drive, images: Images | None, numbers: Iterator[int], prefix: str = ""
) -> Opened:
    """Open a drive's data.

    Parameters
    ----------
    numbers
        Numbers for sets of descriptors, none of them in use.
    prefix
        Begins the names of connections; without one, a name is the descriptor's number,
        which is right for a QEMU that inherits it.

    Raises
    ------
    Failed
        If they cannot be opened.
    """
    found = Opened()
    opener = _Opener(drive, images, numbers, prefix, found)
    try:
        node = opener.handed(blockdev.protocol(drive))
        direct = all(_takes_direct(one) for one in found.sets.values())
    except BaseException:
        found.close()
        raise
    found.data = Data(node, direct=direct)
    return found


@dataclass(frozen=True, slots=True)
class _Opener:
    """Puts descriptors in the place of paths."""

    drive: Drive
    images: Images | None
    numbers: Iterator[int]
    prefix: str
    found: Opened

    def handed(self, node: Node) -> Node:
        """Return a node whose files and sockets, at any depth, are descriptors."""
        match node:
            case {"driver": "file" | "host_device", "filename": str(path)}:
                return node | {"filename": self._file(path)}
            case {"driver": "nbd", "server": {"type": "unix", "path": str(path)}}:
                return node | {"server": {"type": "fd", "str": self._connection(path)}}
            case {"driver": "rbd"}:
                return node | {"conf": self._text(ceph.described(node))}
        return {name: self._deeper(value) for name, value in node.items()}

    def _deeper(self, value: Any) -> Any:  # noqa: ANN401
        return self.handed(value) if isinstance(value, dict) else value

    def _file(self, path: str) -> str:
        flags = os.O_RDONLY if self.drive.mode == "ro" else os.O_RDWR
        where = self.drive.where
        if where.block and path == where.path:
            descriptor = _opened(path, flags)
        elif path != where.path and not (self.images and self.images.allows(path)):
            descriptor = _named_by_provider(path, flags)
        elif self.images:
            descriptor = self.images.open(path, flags)
        else:
            raise Failed(f"{path} cannot be opened: no image file can, here")
        number = next(self.numbers)
        self.found.sets[number] = descriptor
        return f"/dev/fdset/{number}"

    def _text(self, descriptor: int) -> str:
        self.found.texts.append(descriptor)
        return proc.descriptor(descriptor)

    def _connection(self, path: str) -> str:
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(_PATIENCE)
            try:
                with short_path(Path(path)) as name:
                    made.connect(name)
            except OSError as error:
                raise _cannot(path, error) from None
            made.setblocking(True)
            descriptor = made.detach()
        name = f"{self.prefix}{descriptor}"
        self.found.connections[name] = descriptor
        return name


@contextmanager
def opened_file(images: Images | None, path: str) -> Iterator[int]:
    """Open an image file that QEMU is to write, until it has its descriptor.

    Raises
    ------
    Failed
        If it cannot be opened.
    """
    if images is None:
        raise Failed(f"{path} cannot be opened: no image file can, here")
    found = images.open(path, os.O_RDWR)
    try:
        yield found
    finally:
        os.close(found)


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot(path, error) from None


def _named_by_provider(path: str, flags: int) -> int:
    """Open what a provider names, outside of the node's directories for images."""
    try:
        found = open_named(path)
    except OSError as error:
        raise _cannot(path, error) from None
    try:
        return _opened(proc.descriptor(found), flags)
    finally:
        os.close(found)


def _takes_direct(descriptor: int) -> bool:
    """Whether the file system can bypass the cache."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
    except OSError:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    return True


def kernel(path: str, home: Path) -> int:
    """Open a kernel, or its initramfs, so that any user can read it by its descriptor.

    Parameters
    ----------
    home
        A directory for a copy of what others may not read; it has no name there.

    Raises
    ------
    Failed
        If it cannot be opened.
    """
    found = _opened(path, os.O_RDONLY)
    if os.fstat(found).st_mode & stat.S_IROTH:
        return found
    with open(found, "rb") as source, TemporaryFile(dir=home) as copy:  # noqa: PTH123
        shutil.copyfileobj(source, copy)
        copy.flush()
        os.fchmod(copy.fileno(), 0o444)
        return os.dup(copy.fileno())
