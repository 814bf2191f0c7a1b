# SPDX-License-Identifier: BSD-2-Clause
"""The storage that simulated nodes share: volumes, files, and who has them attached.

It answers the commands that templates yield, as the programs and providers would.
"""

import json
import re
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from moorage.errors import CommandFailed
from moorage.model import Device
from moorage.storage import Command, Output
from moorage.units import Mib

from . import exports
from .drbd import Drbd
from .lvm import PROGRAMS, Lvm
from .rbd import Rbd

Records = MutableMapping[str, dict[str, Any]]

MIB = 1024 * 1024
GLUSTER_DIR = "/gluster"
"""Where nodes mount volumes of Gluster."""
SHARED_DIR = "/shared"
"""Files below it are one and the same on every node."""
EXPORTS_DIR = "/sim/export"
"""Where the exports of each node are."""
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
class San:
    """What all simulated nodes see.

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
    turn: Path | None = field(default=None, init=False)

    @classmethod
    def in_directory(cls, directory: Path) -> "San":
        """Return storage that several processes share."""
        shared = ("volumes", "files", "attached", "guests", "devices")
        names = (*shared, "logical", "groups", "mounts", "mirrors", "ended")
        made = cls(*(Files(directory / name) for name in names))
        made.turn = directory / ".turn"
        return made

    def lose_power(self, node: str) -> None:
        """Forget what a node had in memory: its guests and its attachments."""
        lost = (self.guests, self.attached, self.mounts, self.mirrors, self.ended)
        for records in lost:
            for key in [key for key in records if key.startswith(f"{node} ")]:
                del records[key]

    def power_off(self, node: str, guest: str) -> None:
        """Let a guest power itself off."""
        del self.guests[f"{node} {guest}"]
        self.ended[f"{node} {guest}"] = {}

    def answer(self, node: str, command: Command) -> Output:
        """Return what a command prints on `node`.

        Raises
        ------
        CommandFailed
            If it fails and the template does not look at its exit status.
        """
        if self.turn is None:
            return self._answer(node, command)
        with self.turn.open("a") as turn:
            flock(turn, LOCK_EX)
            return self._answer(node, command)

    def _answer(self, node: str, command: Command) -> Output:
        program = PurePosixPath(command.argv[0])
        if program.is_relative_to(PROVIDERS_DIR):
            output = self._script(node, program, dict(command.env))
        elif program.name in ("drbdsetup", "drbdmeta"):
            output = self.drbd.answer(node, command)
        elif command.argv == ("cat", "/proc/drbd"):
            output = Output(self.drbd.status(node))
        else:
            output = _TOOLS[program.name](self, node, _operands(command), command)
        if output.code and command.check:
            title = command.failure or " ".join(command.argv)
            raise CommandFailed(
                f"{title} failed (exited with exit code {output.code}), last lines of "
                f"output:\n{output.stdout}"
            )
        return output

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
        if file and not self._hidden(node, path):
            return Device(kind="file", size=Mib(file["size"] // MIB))
        return Device()

    def _hidden(self, node: str, path: str) -> bool:
        gone = self.unmounted.get(node)
        return gone is not None and PurePosixPath(path).is_relative_to(gone)

    # -- a provider -----------------------------------------------------------------

    def _script(self, node: str, script: PurePosixPath, env: dict[str, str]) -> Output:
        provider = script.parent.name
        asking = {
            "list": lambda: self._listed(provider),
            "capacity": lambda: Output(self.capacity.get(provider, "nobody knows\n")),
            "verify": lambda: self._verified(env),
        }
        if script.name in asking:
            return asking[script.name]()
        volume = env["VOL_NAME"]
        if script.name == "create":
            new = {"size": int(env["VOL_SIZE"]), "provider": provider, "data": ""}
            self.volumes.setdefault(volume, new)
            return Output()
        if script.name in ("remove", "detach", "close"):
            return self._let_go(script.name, node, volume)
        if volume not in self.volumes:
            return Output(f"there is no volume {volume}", 1)
        return self._use(script.name, node, volume, env)

    def _listed(self, provider: str) -> Output:
        lines = [
            f"{name} {volume['size']} {volume.get('note', '')}\n"
            for name, volume in self.volumes.items()
            if volume.get("provider") == provider
        ]
        return Output("".join(lines))

    def _verified(self, env: dict[str, str]) -> Output:
        """Take any tier but one."""
        bad = env.get("EXTP_TIER") == "paper"
        return Output("there is no tier 'paper'", 1) if bad else Output()

    def _let_go(self, action: str, node: str, volume: str) -> Output:
        if action == "remove":
            self.volumes.pop(volume, None)
        if action in ("remove", "detach"):
            self.attached.pop(f"{node} {volume}", None)
        elif f"{node} {volume}" in self.attached:
            self.attached[f"{node} {volume}"] = {"open": None}
        return Output()

    def _use(self, action: str, node: str, volume: str, env: dict[str, str]) -> Output:
        found = self.volumes[volume]
        key = f"{node} {volume}"
        if action == "attach":
            self.attached.setdefault(key, {"open": None})
            device = "" if env["EXTP_PROVIDER"].startswith("user") else f"/dev/{volume}"
            return Output(f"{device}\nkvm:nbd:unix:/sim/{volume}\n")
        if action == "open":
            return self._open(key, volume, alone=env["VOL_OPEN_EXCLUSIVE"] == "True")
        if action == "grow":
            self.volumes[volume] = found | {"size": int(env["VOL_NEW_SIZE"])}
        elif action == "setinfo":
            self.volumes[volume] = found | {"note": env["VOL_METADATA"]}
        elif action == "snapshot":
            size = int(env["VOL_SNAPSHOT_SIZE"])
            self.volumes.setdefault(env["VOL_SNAPSHOT_NAME"], found | {"size": size})
        return Output()

    def _open(self, key: str, volume: str, *, alone: bool) -> Output:
        """Open a volume, as storage with locks does: who is alone stays alone."""
        others = [
            found["open"]
            for other, found in self.attached.items()
            if other.endswith(f" {volume}") and other != key
        ]
        if any(others) or (alone and False in others):
            return Output(f"volume {volume} is open elsewhere", 1)
        self.attached[key] = {"open": alone}
        return Output()

    # -- programs -------------------------------------------------------------------

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

    def _mount(self, node: str, operands: list[str], _command: Command) -> Output:
        source, directory = operands[-2:]
        self.mounts[f"{node} {directory}"] = {"source": source}
        return Output()

    def _findmnt(self, node: str, operands: list[str], _command: Command) -> Output:
        found = self.mounts.get(f"{node} {operands[-1]}")
        return Output(f"{found['source']}\n") if found else Output(code=1)

    def _test(self, node: str, operands: list[str], command: Command) -> Output:
        kind, path = command.argv[1], operands[-1]
        if kind == "-d" and PurePosixPath(path).is_relative_to(EXPORTS_DIR):
            return Output(code=0 if self._beneath(node, path) else 1)
        if kind == "-d":
            return Output()
        if kind == "-b":
            known = self.device(node, path).kind == "block"
            return Output(code=0 if known else 1)
        there = self.key(node, path) in self.files and not self._hidden(node, path)
        return Output(code=0 if there else 1)

    def _stat(self, node: str, operands: list[str], _command: Command) -> Output:
        found = self.files.get(self.key(node, operands[-1]))
        return Output(f"{found['size']}\n") if found else Output(code=1)

    def _truncate(self, node: str, operands: list[str], command: Command) -> Output:
        size = next(a for a in command.argv if a.startswith("--size="))
        wanted = size.removeprefix("--size=")
        key = self.key(node, operands[-1])
        old = self.files.get(key) or {"size": 0, "data": ""}
        least = old["size"] if wanted.startswith(">") else 0
        self.files[key] = old | {"size": max(least, _bytes(wanted.lstrip(">")))}
        return Output()

    def _fallocate(self, node: str, operands: list[str], command: Command) -> Output:
        span = {
            part.split("=")[0]: int(part.split("=")[1])
            for part in command.argv
            if "=" in part
        }
        key = self.key(node, operands[-1])
        old = self.files.get(key) or {"size": 0, "data": ""}
        self.files[key] = old | {"size": span["--offset"] + span["--length"]}
        return Output()

    def _rm(self, node: str, operands: list[str], _command: Command) -> Output:
        keys = [self.key(node, path) for path in operands]
        keys += [key for path in operands for key in self._beneath(node, path)]
        gone = [key for key in keys if self.files.pop(key, None) is not None]
        return Output("".join(f"removed '{key}'\n" for key in gone))

    def _copy(self, node: str, operands: list[str], command: Command) -> Output:
        source, target = (self.key(node, path) for path in operands[-2:])
        inside = self._beneath(node, operands[-2])
        for key in inside:
            self.files[key.replace(source, target, 1)] = self.files.pop(key)
        if inside:
            return Output()
        if source not in self.files:
            return Output(f"no such file: {source}", 1)
        self.files[target] = dict(self.files[source])
        if command.argv[0] == "mv":
            del self.files[source]
        return Output()

    def _find(self, node: str, operands: list[str], command: Command) -> Output:
        root = operands[0]
        if "d" in command.argv:
            return exports.find(self, node, operands, command)
        front = self.key(node, root)
        found = [
            f"{file['size']} {key.removeprefix(f'{front}/')}\0"
            for key, file in self.files.items()
            if key.startswith(f"{front}/")
        ]
        return Output("" if self._hidden(node, root) else "".join(found))

    def _lvm(self, node: str, _operands: list[str], command: Command) -> Output:
        lvm = Lvm(node, self.logical, self.groups)
        return lvm.answer(PurePosixPath(command.argv[0]).name, command.argv)

    def _rbd(self, node: str, _operands: list[str], command: Command) -> Output:
        ceph = Rbd(node, self.volumes, self.attached)
        return ceph.answer(PurePosixPath(command.argv[0]).name, command.argv)

    def _beneath(self, node: str, path: str) -> list[str]:
        """Return the keys of the files in a directory; an empty one is none."""
        root = self.key(node, path)
        return [key for key in self.files if key.startswith(f"{root}/")]

    def _qemu_io(self, _node: str, _operands: list[str], command: Command) -> Output:
        """Write a pattern to a volume, or look whether it is there."""
        name = self.volume_at(command.argv[-1])
        verb, _, pattern, *_ = command.argv[command.argv.index("-c") + 1].split()
        if not name:
            return Output(code=1)
        found = self.volumes[name]
        if verb == "read":
            return Output(code=0 if found.get("pattern") == pattern else 1)
        self.volumes[name] = found | {"pattern": pattern}
        return Output()

    def volume_at(self, target: str) -> str:
        """Return the name of the volume that a device or a URI leads to."""
        words = set(re.split(r'[/"]', target))
        return next((name for name in self.volumes if name in words), "")

    def _nothing(self, _node: str, _operands: list[str], _command: Command) -> Output:
        return Output()

    def _blockdev(self, _node: str, operands: list[str], _command: Command) -> Output:
        device = self.devices.get(operands[-1])
        return Output(f"{device['size'] * MIB}\n") if device else Output(code=1)


def _bytes(text: str) -> int:
    """Return a size as ``truncate`` reads it."""
    return int(text[:-1]) * MIB if text.endswith("M") else int(text)


def _operands(command: Command) -> list[str]:
    return [part for part in command.argv[1:] if not part.startswith("-")]


_Tool = Callable[[San, str, list[str], Command], Output]
_TOOLS: dict[str, _Tool] = {
    "qemu-io": San._qemu_io,  # noqa: SLF001
    "test": San._test,  # noqa: SLF001
    "stat": San._stat,  # noqa: SLF001
    "truncate": San._truncate,  # noqa: SLF001
    "fallocate": San._fallocate,  # noqa: SLF001
    "rm": San._rm,  # noqa: SLF001
    "cp": San._copy,  # noqa: SLF001
    "mv": San._copy,  # noqa: SLF001
    "mkdir": San._nothing,  # noqa: SLF001
    "rmdir": San._nothing,  # noqa: SLF001
    "find": San._find,  # noqa: SLF001
    "chmod": San._nothing,  # noqa: SLF001
    "mount": San._mount,  # noqa: SLF001
    "findmnt": San._findmnt,  # noqa: SLF001
    "blockdev": San._blockdev,  # noqa: SLF001
    **dict.fromkeys(PROGRAMS, San._lvm),  # noqa: SLF001
    **dict.fromkeys(("rbd", "ceph"), San._rbd),  # noqa: SLF001
    "sync": San._nothing,  # noqa: SLF001
    "qemu-img": exports.qemu_img,
    "printf": exports.printf,
    "cat": exports.cat,
    "sha256sum": exports.digest,
}
