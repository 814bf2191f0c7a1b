# SPDX-License-Identifier: BSD-2-Clause
"""A lab: two nodes with real QEMU on one machine, to test the kvm hypervisor with."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.hypervisors.kvm import Kvm
from moorage.node.machine.images import Images
from moorage.storage import Where
from moorage.testing.foreign import until
from moorage.testing.guest import Guest
from moorage.testing.guest_image import ARGUMENTS
from moorage.units import Mib

_DISK_MIB = 32


class Lab:
    """Two nodes, their common storage, and the daemons that serve it.

    Parameters
    ----------
    guest
        Directory with the tiny guest's ``vmlinuz`` and ``initrd.gz``.
    unsafe_live_emulation
        What the nodes have of that name.

    Attributes
    ----------
    images
        Opens image files anywhere in the lab's directory.
    """

    def __init__(self, guest: Path, *, unsafe_live_emulation: bool = False) -> None:
        self._unsafe = unsafe_live_emulation
        self.top = Path(tempfile.mkdtemp(prefix="lab-"))
        listed = self.top / "file-storage-paths"
        listed.write_text(f"{self.top}\n")
        self.images = Images("lab", listed)
        self.one = self._node("n1", "127.0.81.1")
        self.two = self._node("n2", "127.0.81.2")
        self._guest = guest
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._images: dict[str, Path] = {}

    def _node(self, name: str, address: str) -> Kvm:
        found = Kvm(self.top / name, address, self.images, unplug_timeout=60)
        found.unsafe_live_emulation = self._unsafe
        return found

    def close(self) -> None:
        """End every guest and daemon, and remove all files."""
        asyncio.run(self._stop())
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(self.top)

    async def _stop(self) -> None:
        for node in (self.one, self.two):
            for guest in await node.guests():
                await node.stop(guest.uuid, 0)

    def spec(self, *drives: Drive, **hvparams: object) -> GuestSpec:
        """Return a tiny guest of 128 MiB that boots with a kernel of the node's."""
        kernel = {
            "kernel_path": str(self._guest / "vmlinuz"),
            "initrd_path": str(self._guest / "initrd.gz"),
            "kernel_args": ARGUMENTS,
        }
        uuid = str(uuid4())
        return GuestSpec(
            uuid=uuid,
            name=f"guest-{uuid[:4]}",
            memory=Mib(128),
            hvparams=kernel | hvparams,
            drives=drives,
        )

    def inside(self, node: Kvm, spec: GuestSpec) -> Guest:
        """Return a client that runs commands in the guest."""
        return Guest(node.channel(spec.uuid))

    def drive(self, kind: str, slot: int = 0) -> Drive:
        """Return a new drive of 32 MiB, with data in a ``file`` or behind ``nbd``."""
        disk = str(uuid4())
        image = self.top / f"{disk}.img"
        image.touch()
        os.truncate(image, _DISK_MIB << 20)
        self._images[disk] = image
        where = self._where(kind == "nbd", image)
        return Drive(disk=disk, slot=slot, size=Mib(_DISK_MIB), where=where)

    def elsewhere(self, uri: str) -> Drive:
        """Return a drive whose data are at `uri`."""
        where = Where(uris={"kvm": uri})
        return Drive(disk=str(uuid4()), slot=0, size=Mib(_DISK_MIB), where=where)

    def grow(self, drive: Drive, mib: int) -> Drive:
        """Grow the data, as a provider does; return the drive where it is now."""
        image = self._images[drive.disk]
        os.truncate(image, mib << 20)
        where = self._where(bool(drive.where.uris), image)
        return replace(drive, size=Mib(mib), where=where)

    def _where(self, remote: bool, image: Path) -> Where:
        return self._served(image) if remote else Where(path=str(image))

    def _served(self, image: Path) -> Where:
        path = self.top / f"{uuid4().hex[:8]}.sock"
        argv = [
            *("qemu-storage-daemon", "--blockdev"),
            f"driver=file,node-name=f,filename={image},locking=off",
            *("--blockdev", "driver=raw,node-name=r,file=f", "--nbd-server"),
            f"addr.type=unix,addr.path={path},max-connections=0",
            *("--export", "type=nbd,id=e,node-name=r,name=d,writable=on"),
        ]
        self._daemons.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
        until(path.exists, f"no daemon comes up at {path}")
        return Where(uris={"kvm": f"nbd:unix:{path}:exportname=d"})
