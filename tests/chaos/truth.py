# SPDX-License-Identifier: BSD-2-Clause
"""What is really there: volumes, attachments and guests, read from outside.

On the fake hypervisor the storage is the provider beside this file, whose scripts are
slow and keep their state in plain files. With real guests it is the bundled provider
``qsd``: image files, leases, and QEMU processes.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept import PROVIDER as KEPT
from kept import Volumes
from stamps import Stamps

from moorage.daemons.devcluster import Scratch
from moorage.node.hypervisors.kvm import Kvm

HERE = Path(__file__).parent
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest as its node has it; `disks` are uuids."""

    node: str
    uuid: str
    name: str
    state: str
    disks: frozenset[str]


class Files:
    """The truth on the fake hypervisor.

    Parameters
    ----------
    slow
        Longest pause of a script before and after its work, in ms.
    """

    provider = "slow"
    stamps = None
    watched = True
    instance: dict[str, Any] = {}

    def __init__(self, scratch: Scratch, slow: int) -> None:
        self._scratch = scratch
        self._root = scratch.path / "truth"
        for name in ("volumes", "attached"):
            (self._root / name).mkdir(parents=True)
        self.scripts = scratch.path / "extstorage" / self.provider
        self.kept = Volumes(self._root / "kept")
        settings = f"TRUTH='{self._root}'\nSLOW={slow}\n"
        for source, name in (("provider", self.provider), ("kept", KEPT)):
            scripts = self.scripts.with_name(name)
            shutil.copytree(HERE / source, scripts)
            (scripts / "settings.sh").write_text(settings)

    def volumes(self) -> dict[str, int]:
        """Return the size in MiB of every volume."""
        return {path.name: number for path, number in self._numbers("volumes")}

    def attached(self) -> dict[tuple[str, str], int]:
        """Return the epoch of every attachment, by node and volume."""
        found = {}
        for path, number in self._numbers("attached"):
            node, _, volume = path.name.partition(":")
            found[node, volume] = number
        return found

    def _numbers(self, kind: str) -> Iterator[tuple[Path, int]]:
        for path in sorted((self._root / kind).iterdir()):
            if not path.name.endswith(".new"):
                with suppress(FileNotFoundError):
                    yield path, int(path.read_text())

    def guests(self) -> list[Guest]:
        """Return every guest of every node."""
        return [one for node in self._scratch.names for one in self._guests_on(node)]

    def _guests_on(self, node: str) -> Iterator[Guest]:
        for path in sorted((self._scratch.node(node).run / "fake").glob("*.json")):
            with suppress(FileNotFoundError):
                guest = json.loads(path.read_text())["guest"]
                disks = frozenset(guest["disks"])
                yield Guest(node, guest["uuid"], guest["name"], guest["state"], disks)


class Qemu:
    """The truth with real guests."""

    provider = "qsd"
    kept = None
    watched = False
    """Guests are asked in quiet alone: a monitor has room for one."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.stamps = Stamps()
        self.scripts = scratch.path / "extstorage" / self.provider
        kernel = f"{scratch.guest}/vmlinuz"
        initrd = f"{scratch.guest}/initrd.gz"
        self.instance: dict[str, Any] = {
            "hvparams": {"kernel_path": kernel, "initrd_path": initrd}
        }

    def volumes(self) -> dict[str, int]:
        """Return the size in MiB of every image."""
        return {path.name: path.stat().st_size // MIB for path in self._images()}

    def _images(self) -> list[Path]:
        images = (self._scratch.path / "shared" / "qsd").iterdir()
        return [p for p in images if p.suffix not in (".lease", ".info", ".new")]

    def attached(self) -> dict[tuple[str, str], int]:
        """Return the epoch of every lease, by node and volume."""
        found = {}
        for path in (self._scratch.path / "shared" / "qsd").glob("*.lease"):
            for line in path.read_text().splitlines():
                node, _mode, epoch = line.split()
                found[node, path.name.removesuffix(".lease")] = int(epoch)
        return found

    def guests(self) -> list[Guest]:
        """Return every guest of every node."""
        return [one for node in self._scratch.names for one in self._guests_on(node)]

    def stamped(self, disks: list[dict[str, Any]]) -> Iterator[str]:
        """Yield what guests wrote to disks and is not there any more."""
        there = {path.name: path for path in self._images()}
        sound = [one for one in disks if one["volume"] in there]
        images = {
            one["uuid"]: there[one["volume"]] for one in sound if not one["quarantine"]
        }
        running = [one for one in self.guests() if one.state == "running"]
        doors = [(self._channel(one), one.disks & images.keys()) for one in running]
        yield from self.stamps.look(images, doors)

    def _channel(self, guest: Guest) -> Path:
        return self._scratch.node(guest.node).run / "kvm" / guest.uuid / "channel"

    def _guests_on(self, node: str) -> Iterator[Guest]:
        places = self._scratch.node(node)
        kvm = Kvm(places.run / "kvm", self._scratch.address(node))
        for one in asyncio.run(kvm.guests()):
            yield Guest(node, one.uuid, one.name, one.state, frozenset(one.disks))
