# SPDX-License-Identifier: BSD-2-Clause
"""Volumes with somebody's data, which disks are made of again and again.

A volume is known by its name. It is made, written to, let go of with its data, and
taken again; often in a job that fails after it was taken. Whatever fails or dies:
nothing but a request to destroy it may touch what was written.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Protocol

PROVIDER = "kept"


@dataclass
class Volume:
    """A volume with data that must live.

    Attributes
    ----------
    digest
        Checksum of what was written.
    known
        Whether the cluster has a disk of it: yes, no, or None for nobody can tell.
    """

    digest: str
    size: int
    known: bool | None = True


class Volumes:
    """What is in the volumes, read and written from outside."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True)

    def write(self, name: str) -> str:
        """Let somebody write to a volume; return the checksum of it."""
        data = secrets.token_bytes(4096)
        with (self._root / name).open("r+b") as file:
            file.write(data)
        return sha256(data).hexdigest()

    def digests(self) -> dict[str, str]:
        """Return the checksum of each volume that is there."""
        return {
            path.name: sha256(path.read_bytes()).hexdigest()
            for path in sorted(self._root.iterdir())
        }


class Asks(Protocol):
    """Somebody who makes requests."""

    instance: str

    def ask(self, op_id: str, **fields: Any) -> str:
        """Return how a job ended; ``doubt`` where nobody can tell."""


class Keeper:
    """Works on such volumes for one client.

    Attributes
    ----------
    volumes
        Those that must live.
    ours
        Names of all that ever were asked for.
    """

    def __init__(self, asks: Asks, dice: Random, there: Volumes, prefix: str) -> None:
        self.volumes: dict[str, Volume] = {}
        self.ours: set[str] = set()
        self._asks = asks
        self._dice = dice
        self._there = there
        self._prefix = prefix

    def step(self) -> None:
        """Do one thing."""
        name = self._dice.choice(sorted(self.volumes)) if self.volumes else ""
        if len(self.volumes) < 3 and (not name or self._dice.random() < 0.4):
            self._make()
        elif self.volumes[name].known is False:
            self._dice.choice((self._take, self._take_and_fail))(name)
        elif self.volumes[name].known and self._dice.random() < 0.1:
            self._destroy(name)
        else:
            self._let_go(name)

    def _make(self) -> None:
        name = f"{self._prefix}k{len(self.ours)}"
        self.ours.add(name)
        if self._add(name, 8) == "success":
            self.volumes[name] = Volume(self._there.write(name), 8)

    def _add(self, name: str, size: int, **params: str) -> str:
        fields = {"disk_template": "ext", "provider": PROVIDER, "params": params}
        return self._asks.ask("OP_DISK_ADD", name=name, size=size, **fields)

    def _let_go(self, name: str) -> None:
        """Let the cluster forget the disk; what is written stays."""
        ended = self._asks.ask("OP_DISK_FORGET", disk=name, why="kept outside")
        if ended != "refused":
            self.volumes[name].known = False if ended == "success" else None
        if ended == "error":  # it may hang at an instance, after half a job
            what = {"instance_name": self._asks.instance, "keep_disks": True}
            change = ["remove", name, {}]
            ended = self._asks.ask("OP_INSTANCE_SET_PARAMS", disks=[change], **what)
            self.volumes[name].known = False if ended == "success" else None

    def _take(self, name: str) -> None:
        volume = self.volumes[name]
        if self._dice.random() < 0.3:
            fields = {"disk_template": "ext", "provider": PROVIDER, "adopt": name}
            ended = self._asks.ask("OP_DISK_ADD", name=name, **fields)
        else:
            ended = self._add(name, volume.size, reuse_data="True")
        now = {"success": True, "error": False, "refused": False}
        volume.known = now.get(ended)

    def _take_and_fail(self, name: str) -> None:
        """Take it in a job that fails afterwards."""
        size = self.volumes[name].size
        last = {"name": f"{name}x{secrets.token_hex(2)}", "break": "create"}
        both = [{"name": name, "reuse_data": "True"}, last]
        changes = [["add", -1, {"provider": PROVIDER, "size": size} | x] for x in both]
        what = {"instance_name": self._asks.instance, "disk_template": "ext"}
        ended = self._asks.ask("OP_INSTANCE_SET_PARAMS", disks=changes, **what)
        if ended != "error":
            self.volumes[name].known = None

    def _destroy(self, name: str) -> None:
        """Ask for its end; from then on it may be gone."""
        del self.volumes[name]
        self._asks.ask("OP_DISK_REMOVE", disk=name)

    # -- in quiet -------------------------------------------------------------------

    def look(self, disks: dict[str, bool], there: dict[str, str]) -> Iterator[str]:
        """Yield what was destroyed or changed; learn what is on record.

        Parameters
        ----------
        disks
            Names of the disks on record, and whether they are in quarantine: a failed
            job may not have been undone.
        there
            The checksums of the volumes.
        """
        for name, volume in sorted(self.volumes.items()):
            if name not in there:
                yield f"volume {name} with somebody's data was destroyed"
            elif there[name] != volume.digest:
                yield f"volume {name} has other data than what was written"
            elif volume.known and name not in disks:
                yield f"acknowledged disk {name} is gone"
            elif volume.known is False and disks.get(name) is False:
                yield f"disk {name} was acknowledged to be forgotten, and is there"
            volume.known = name in disks
        for name in sorted(
            self.ours.intersection(there) - disks.keys() - self.volumes.keys()
        ):
            yield f"orphan: nobody knows of volume {name}, and nobody wants it"
