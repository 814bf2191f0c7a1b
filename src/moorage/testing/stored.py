# SPDX-License-Identifier: BSD-2-Clause
"""What lies in the storage that simulated nodes share, and where each node finds it."""

import json
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from moorage.model import Device
from moorage.units import MIB, Mib

from .arguments import Records
from .drbd import Drbd

GLUSTER_DIR = "/gluster"
"""Where nodes mount volumes of Gluster."""
SHARED_DIR = "/shared"
"""Files below it are one and the same on every node."""
EXPORTS_DIR = "/sim/export"
"""Where the exports of each node are."""
ALLOCATORS_DIR = "/sim/iallocators"
"""Where simulated nodes look for allocators; there are none."""
PROVIDERS_DIR = "/sim/extstorage"
"""Where simulated providers are said to be."""


class Files(MutableMapping[str, dict[str, Any]]):
    """Records in files, for simulated nodes that are processes of their own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def __getitem__(self, key: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._path(key).read_text())
        except FileNotFoundError:
            raise KeyError(key) from None
        return found

    def __setitem__(self, key: str, value: dict[str, Any]) -> None:
        draft = self._directory / f".{quote(key, safe='')}"
        draft.write_text(json.dumps(value))
        draft.replace(self._path(key))

    def __delitem__(self, key: str) -> None:
        try:
            self._path(key).unlink()
        except FileNotFoundError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        names = sorted(path.name for path in self._directory.iterdir())
        return (unquote(name) for name in names if not name.startswith("."))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, key: str) -> Path:
        return self._directory / quote(key, safe="")


@dataclass
class Stored:
    """What all simulated nodes see, and where each finds it.

    Attributes
    ----------
    volumes
        Volumes of providers by name: ``size`` (MiB), ``note``, ``provider``, ``data``.
    files
        Files by path, with the node in front when they are local: ``size`` in bytes.
    attached
        Attachments by ``node volume``: ``open`` is True, False or None.
    guests
        Guests by ``node uuid``; see :mod:`moorage.testing.guests`.
    devices
        Block devices by path, with the node in front where it has another one there:
        ``size`` in MiB, ``identity``, and ``number`` if it is not the path.
    capacity
        What the script of that name prints, by provider.
    logical, groups
        Logical volumes and volume groups of the nodes; see :mod:`moorage.testing.lvm`.
    mounts
        What nodes have mounted, by ``node directory``: ``source``.
    mirrors
        Devices of DRBD by ``node minor``; see :mod:`moorage.testing.drbd`.
    unmounted
        Directories by node, below which it sees no shared files.
    slow_sync
        How many looks a sync of two copies takes; with 0 it is done at once.
    ended
        Guests by ``node uuid`` that powered themselves off there.
    broken
        What must never happen, and happened in this process.
    stunted
        Providers whose ``grow`` says yes, and does nothing.
    turn
        The file that a process locks while a program works on what others see; None
        where there is one process alone.
    """

    volumes: Records = field(default_factory=dict)
    files: Records = field(default_factory=dict)
    attached: Records = field(default_factory=dict)
    guests: Records = field(default_factory=dict)
    devices: Records = field(default_factory=dict)
    capacity: dict[str, str] = field(default_factory=dict, init=False)
    logical: Records = field(default_factory=dict)
    groups: Records = field(default_factory=dict)
    mounts: Records = field(default_factory=dict)
    mirrors: Records = field(default_factory=dict)
    ended: Records = field(default_factory=dict)
    slow_sync: int = field(default=0, init=False)
    unmounted: dict[str, str] = field(default_factory=dict, init=False)
    broken: list[str] = field(default_factory=list, init=False)
    stunted: set[str] = field(default_factory=set, init=False)
    turn: Path | None = field(default=None, init=False)

    @property
    def drbd(self) -> Drbd:
        """The mirrors, as their programs work on them."""
        return Drbd(self.mirrors, self.logical, self._is_open, self.slow_sync)

    def _is_open(self, node: str, path: str) -> bool:
        """Whether a guest of a node has a device open."""
        return any(
            key.startswith(f"{node} ")
            and one["state"]["state"] in ("running", "paused")
            and path in (one["drives"].get(disk) for disk in one["state"]["disks"])
            for key, one in self.guests.items()
        )

    def device(self, node: str, path: str) -> Device:
        """Return what a node has at a path."""
        if path.startswith("/dev/drbd"):
            mirror = self.drbd.size(node, path.removeprefix("/dev/drbd"))
            return Device(kind="block", size=Mib(mirror or 0), number=path)
        found = self.devices.get(f"{node}:{path}") or self.devices.get(path)
        if found:
            return Device(
                kind="block",
                size=Mib(found["size"]),
                identity=found["identity"],
                number=found.get("number", path),
            )
        logical = self.logical.get(f"{node} {path.removeprefix('/dev/')}")
        if logical:
            return Device(kind="block", size=Mib(logical["size"]), number=path)
        volume = self.volumes.get(path.removeprefix("/dev/"))
        if volume:
            size = int(volume["real"] if "real" in volume else volume["size"])
            return Device(kind="block", size=Mib(size), number=path)
        file = self.files.get(self.key(node, path))
        if file and not self.is_hidden(node, path):
            return Device(kind="file", size=Mib(file["size"] // MIB))
        return Device()

    def is_hidden(self, node: str, path: str) -> bool:
        """Whether a node sees no shared files at a path."""
        gone = self.unmounted.get(node)
        return gone is not None and PurePosixPath(path).is_relative_to(gone)

    def key(self, node: str, path: str) -> str:
        """Return under which key a file is recorded: of all nodes, or one's own."""
        if PurePosixPath(path).is_relative_to(SHARED_DIR):
            return path
        root = "/".join(path.split("/")[:3])
        mounted = self.mounts.get(f"{node} {root}")
        return mounted["source"] + path[len(root) :] if mounted else f"{node}:{path}"

    @staticmethod
    def known_as(key: str) -> str:
        """Return the path of a file, as the record of its disk says it."""
        path = key.partition(":")[2] or key
        return path if path.startswith("/") else path.partition("/")[2]

    def beneath(self, node: str, path: str) -> list[str]:
        """Return the keys of the files in a directory; an empty one is none."""
        root = self.key(node, path)
        return [key for key in self.files if key.startswith(f"{root}/")]

    def volume_at(self, target: str) -> str:
        """Return the name of the volume that a device or a URI leads to."""
        words = set(re.split(r'[/"]', target))
        return next((name for name in self.volumes if name in words), "")
