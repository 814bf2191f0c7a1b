# SPDX-License-Identifier: BSD-2-Clause
"""Guests that are nodes: to test storage which needs a kernel of its own.

Each has the host's files, a kernel with device-mapper, LVM and DRBD, disks of its own,
and an address on a bridge that the host has one on, too. They are emulated, and need
root on the host.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import json

from moorage.errors import Failed
from moorage.node.hypervisors.kvm.accelerator import emulated
from moorage.testing.guest_image import ARGUMENTS

from .foreign import run, until
from .guest import PATIENCE, Guest

_MEMORY = 512
_VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")
_HOST = 254
_STATE, _STATE_MIB = "state", 32
"""The disk that keeps the agent's directory."""
_AGENT = "/var/lib/moorage-node"


class NodeGuest:
    """A guest that is a node.

    Parameters
    ----------
    home
        Its directory.
    number
        The last part of its address.
    disks
        Sizes in MiB; the first is ``/dev/vda``.

    Attributes
    ----------
    address
        Where the host, and the other nodes, reach it.
    """

    def __init__(
        self, home: Path, network: str, number: int, disks: tuple[int, ...]
    ) -> None:
        self.name = f"node{number}"
        self.address = f"{network}.{number}"
        self.tap = f"mrgt{network.replace('.', '')[2:]}{number}"
        self._home = home / self.name
        self._home.mkdir()
        self._mac = f"52:54:00:00:00:{number:02x}"
        sizes = [(f"disk{at}", size) for at, size in enumerate(disks)]
        self._images = [self._image(*one) for one in (*sizes, (_STATE, _STATE_MIB))]
        run("mkfs.ext4", "-q", str(self._home / _STATE))
        self._running: list[subprocess.Popen[bytes]] = []

    def _image(self, name: str, size: int) -> Path:
        path = self._home / name
        path.touch()
        os.truncate(path, size << 20)
        return path

    def start(self, guest: Path) -> None:
        """Switch it on; `guest` is where kernel and system are.

        It boots for a while: :meth:`run` waits until it is up.
        """
        with (self._home / "log").open("ab") as log:
            self._spawn(
                str(_VIRTIOFSD),
                f"--socket-path={self._home}/files",
                *("-o", "source=/,cache=always,sandbox=chroot"),
                "--thread-pool-size=2",
                log=log.fileno(),
            )
            until((self._home / "files").exists, "there are no files")
            self._spawn("qemu-system-x86_64", *self._words(guest), log=log.fileno())

    def _spawn(self, *argv: str, log: int) -> None:
        null = subprocess.DEVNULL
        made = subprocess.Popen(argv, stdin=null, stdout=null, stderr=log)
        self._running.append(made)

    def _words(self, guest: Path) -> list[str]:
        # Emulated time stamp counters run many times too fast on a busy machine.
        clock = "tsc=unstable clocksource=acpi_pm"
        name = f"moorage.name={self.name} moorage.address={self.address}/24"
        words = [
            *("-name", self.name, "-machine", "q35,usb=off,memory-backend=mem"),
            *("-accel", emulated(_MEMORY), "-cpu", "max", "-m", f"{_MEMORY}"),
            *("-object", f"memory-backend-memfd,id=mem,size={_MEMORY}M,share=on"),
            *("-nodefaults", "-no-user-config", "-display", "none"),
            *("-kernel", f"{guest}/vmlinuz", "-initrd", f"{guest}/node.gz"),
            *("-append", f"{ARGUMENTS} {clock} {name}"),
            *("-chardev", f"file,id=log,path={self._home}/consolelog"),
            *("-serial", "chardev:log", "-device", "virtio-serial-pci"),
            *("-chardev", f"socket,id=ch,path={self.channel},server=on,wait=off"),
            *("-device", "virtserialport,chardev=ch,name=channel"),
            *("-chardev", f"socket,id=files,path={self._home}/files"),
            *("-device", "vhost-user-fs-pci,chardev=files,tag=host"),
            *("-netdev", f"tap,id=net,ifname={self.tap},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=net,mac={self._mac}"),
        ]
        for number, image in enumerate(self._images):
            node = f"driver=file,filename={image},node-name=d{number}"
            words += ["-blockdev", node, "-device"]
            words += [f"virtio-blk-pci,drive=d{number},serial={image.name}"]
        return words

    @property
    def channel(self) -> Path:
        """The socket of its channel."""
        return self._home / "channel"

    def run(self, command: str, timeout: float = PATIENCE) -> str:
        """Run a shell command in it; return what it printed.

        Raises
        ------
        CommandFailed
            If its exit status is not 0.
        """

        async def ask() -> str:
            async with Guest(self.channel) as inside:
                return await inside.run(command, timeout)

        return asyncio.run(ask())

    def start_agent(self, hypervisor: str = "fake") -> str:
        """Start the agent; return the token of a node that waits to be let in.

        The token is empty where the node is in a cluster already.
        """
        settings = json.encode({"address": self.address, "hypervisor": hypervisor})
        program = Path(sys.executable).parent / "moorage"
        begin = (
            f"cd {_AGENT}; rm -f join-token serving; chmod 700 .; "
            f"[ -e agent.json ] || echo '{settings.decode()}' > agent.json; "
            f"setsid {program} agent {_AGENT} </dev/null >>agent.log 2>&1 & "
            "for n in $(seq 600); do "
            "[ -e join-token ] || [ -e serving ] && break; sleep 0.2; done; "
        )
        return self.run(
            begin + "[ -e serving ] || cat join-token 2>/dev/null || cat agent.log"
        ).strip()

    def lose_power(self) -> None:
        """End it at once; what it wrote to its disks stays."""
        for one in reversed(self._running):
            one.kill()
            one.wait()
        self._running.clear()
        self.channel.unlink(missing_ok=True)


class NodeGuests:
    """Guests that are nodes, on a bridge of their own; a context manager.

    Parameters
    ----------
    guest
        Directory with ``vmlinuz`` and ``node.gz``.

    Attributes
    ----------
    address
        The host's own address on the bridge.
    """

    def __init__(self, guest: Path) -> None:
        self._guest = guest
        self._home = Path(tempfile.mkdtemp(prefix="nodes-"))
        self._network = f"10.{64 + os.getpid() // 250 % 128}.{os.getpid() % 250}"
        self._bridge = f"mrgb{os.getpid()}"
        self.address = f"{self._network}.{_HOST}"
        self.nodes: list[NodeGuest] = []

    def __enter__(self) -> Self:
        run("ip", "link", "add", self._bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.address}/24", "dev", self._bridge)
        run("ip", "link", "set", self._bridge, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.lose_power()
            with suppress(Failed):
                run("ip", "link", "del", node.tap)
        run("ip", "link", "del", self._bridge)
        shutil.rmtree(self._home)

    def add(self, *disks: int) -> NodeGuest:
        """Switch on one more node, with disks of so many MiB; it boots for a while.

        The first :meth:`NodeGuest.run` waits until it is up, so several boot at a time.
        """
        node = NodeGuest(self._home, self._network, len(self.nodes) + 1, disks)
        self.nodes.append(node)
        run("ip", "tuntap", "add", node.tap, "mode", "tap")
        run("ip", "link", "set", node.tap, "master", self._bridge, "up")
        node.start(self._guest)
        return node
