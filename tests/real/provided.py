# SPDX-License-Identifier: BSD-2-Clause
"""The bundled providers, driven as a node drives them."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moorage.errors import CommandFailed
from moorage.model import Disk
from moorage.node.extensions.providers import Providers
from moorage.node.machine.commands import run
from moorage.node.machine.images import Images
from moorage.node.verbs.context import drive
from moorage.storage import (
    Command,
    Output,
    Site,
    Template,
    VolumeRequest,
    Where,
    template_named,
)
from moorage.storage.provider import usable
from moorage.units import Mib

SHARE = Path(__file__).parents[2] / "share"
MIB = 1024 * 1024


@dataclass
class Storage:
    """A directory of images, and nodes that use it."""

    provider: str
    top: Path
    access: str = "kernelspace"
    serial: int = 0
    disks: list[Disk] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("images", "log", "run"):
            (self.top / name).mkdir()
        (self.top / "log" / "list").write_text(f"{self.top}\n")

    @property
    def images(self) -> Path:
        return self.top / "images"

    async def run(self, command: Command) -> Output:
        """Run a command as an agent does, whose list allows our directory."""
        command = Providers([SHARE / "extstorage"]).applied(command)
        with Images("n", self.top / "log" / "list").handed(command.images) as handed:
            assert handed
            log = self.top / "log"
            return await run(command, log_dir=log, timeout=60, handed=handed)

    def node(self, name: str) -> Template:
        providers = usable(Providers([SHARE / "extstorage"]).scan())
        return template_named("ext")(Site(node=name, providers=providers))

    def disk(self, epoch: int = 1, size: int = 16) -> Disk:
        ext = template_named("ext")
        params = {
            "provider": self.provider,
            "access": self.access,
            "dir": str(self.images),
            "run": str(self.top / "run"),
        }
        self.serial += 1
        unique = f"{self.top.name}-{self.serial}"
        disk = Disk(
            uuid=f"uuid-of-{unique}",
            dev_type="ext",
            logical_id=ext.logical_id(VolumeRequest(unique=unique, params=params)),
            size=Mib(size),
            params=ext.parameters(params),
            epoch=epoch,
        )
        self.disks.append(disk)
        return disk

    async def __call__(self, steps):
        return await drive(steps, self.run)

    def processes(self) -> list[int]:
        """The daemons that serve something below our directory."""
        found = []
        top = str(self.top).replace(",", ",,")  # as an option of QEMU's
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = one.read_bytes()
            except OSError:  # it ended meanwhile
                continue
            if b"qemu-storage-daemon" in line and top.encode() in line:
                found.append(int(one.parent.name))
        return found

    def loops(self) -> list[str]:
        told = subprocess.run(
            ["losetup", "--list", "--json", "--output", "NAME,BACK-FILE"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        devices = json.loads(told)["loopdevices"] if told.strip() else []
        return [
            one["name"]
            for one in devices
            if str(one["back-file"]).startswith(str(self.top))
        ]

    def clean(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for device in self.loops():
            subprocess.run(["losetup", "--detach", device], check=True)


def storage(provider: str, access: str = "kernelspace") -> Iterator[Storage]:
    top = Path(tempfile.mkdtemp(prefix="mrg", dir="/var/tmp"))
    made = Storage(provider, top, access)
    try:
        yield made
    finally:
        made.clean()
        shutil.rmtree(top)


def reached(where: Where) -> str:
    return where.path or where.uris["kvm"]


def qemu_io(where: str, *commands: str) -> subprocess.CompletedProcess[str]:
    told = [word for one in commands for word in ("-c", one)]
    argv = ["qemu-io", "-f", "raw", *told, where]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)


def write(where: Where, pattern: int, at: str = "0", length: str = "1M") -> None:
    done = qemu_io(reached(where), f"write -P {pattern} {at} {length}", "flush")
    assert done.returncode == 0, done.stdout + done.stderr


def holds(where: Where, pattern: int, at: str = "0", length: str = "1M") -> bool:
    done = qemu_io(reached(where), f"read -P {pattern} {at} {length}")
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def size_of(where: str) -> int:
    argv = ["qemu-img", "info", "--output", "json", "-f", "raw", where]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return int(json.loads(told)["virtual-size"])


def left_over(made: Storage) -> list[str]:
    """What is still there of all volumes, besides logs and locks."""
    files = [one for one in made.top.rglob("*") if not one.is_dir()]
    names = [str(one.relative_to(made.top)) for one in files]
    kept = [
        name for name in names if not name.startswith("log/") and name != "run/lock"
    ]
    return [*kept, *map(str, made.processes()), *made.loops()]


async def stale(made: Storage, steps) -> str:
    with pytest.raises(CommandFailed) as caught:
        await made(steps)
    return caught.value.message
