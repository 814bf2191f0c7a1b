# SPDX-License-Identifier: BSD-2-Clause
"""Nodes with a kernel of their own: to test storage that needs one.

Each is a user-mode Linux, a kernel that runs as a program: there is nothing to emulate,
and no image to make. It has device-mapper, LVM and DRBD, the host's files below a layer
of its own, disks, and an address on a bridge that the host has one on, too. They need
root on the host.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import json

import moorage
from moorage.errors import Failed
from moorage.testing.foreign import run
from moorage.testing.guest import LONGEST_ANSWER, PATIENCE, Guest
from moorage.testing.guest_image.system import CHANNEL

_MEMORY = 512
"""MiB of each; what it does not touch costs the host nothing."""
_LINUX = "linux.uml"
_HOST = 254
_AGENT = "/var/lib/moorage-node"
_PROGRAMS = {
    "init": r"""#!/bin/sh
# The first process: the host's files, below a layer of the node's own in memory.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LC_ALL=C
mount -n -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/node
busybox insmod /usr/lib/uml/modules/*/kernel/fs/overlayfs/overlay.ko
layers=lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work
mount -n -t overlay -o $layers overlay /mnt/node
cd /mnt/node
mount -n -t proc proc proc
mount -n -t sysfs sys sys
mount -n -t devtmpfs dev dev
mkdir -p dev/pts dev/shm
mount -n -t devpts devpts dev/pts
for d in dev/shm tmp run; do mount -n -t tmpfs tmpfs $d; done
IFS=:
for d in $programs; do  # what lies below one of these is hidden by now
    [ -d ".$d" ] || { mkdir -p ".$d"; mount -n --bind "$d" ".$d"; }
done
unset IFS
mkdir -p run/lock run/lvm
cp "$home/node" "$home/channel" run
exec chroot . sh /run/node
""",
    "node": r"""# The node's own settings; then a shell at its serial line, for ever.
hostname "$name"
ip link set lo up
ip link set vec0 up
ip addr add "$address" dev vec0
rm -rf /etc/lvm /var/lib/drbd /var/lib/moorage-node /lib/modules
mkdir -p /etc/lvm /var/lib/drbd /var/lib/moorage-node
ln -s /usr/lib/uml/modules /lib/modules
for m in dm-snapshot dm-mirror dm-thin-pool drbd hmac; do busybox modprobe $m; done
cat > /etc/lvm/lvm.conf <<CONF
activation { udev_sync=0 udev_rules=0 verify_udev_operations=0 }
devices { obtain_device_list_from_udev=0 use_devicesfile=0 filter=[ "r|/dev/drbd.*|" ] }
backup { backup=0 archive=0 }
CONF
echo /bin/true > /sys/module/drbd/parameters/usermode_helper
exec 3<>/dev/ttyS0
stty raw -echo <&3
echo ready >&3
while :; do sh /run/channel /dev/ttyS0; sleep 1; done
""",
    "channel": CHANNEL,
}
"""What runs in a node: no udev and no systemd."""


def _ours() -> list[str]:
    """Return the directories with this Python's programs, and with Moorage's source."""
    return [sys.prefix, str(Path(moorage.__file__).parent)]


class _Line(Guest):
    """A node, reached through its serial line.

    Parameters
    ----------
    end
        The host's end of the line, a socket that is open.
    home
        Its directory.
    """

    def __init__(self, end: socket.socket, home: Path) -> None:
        super().__init__(home / "channel")
        self._end = end

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(
            sock=self._end.dup(), limit=LONGEST_ANSWER
        )


class NodeGuest:
    """A node with a kernel of its own.

    Parameters
    ----------
    home
        Its directory.
    number
        The last part of its address.
    disks
        Sizes in MiB; the first is ``/dev/ubda``.

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
        self._images = [self._image(at, size) for at, size in enumerate(disks)]
        self._end, self._line = socket.socketpair()
        self._running: subprocess.Popen[bytes] | None = None
        self._up = False

    def _image(self, number: int, size: int) -> Path:
        path = self._home / f"disk{number}"
        path.touch()
        os.truncate(path, size << 20)
        return path

    def start(self) -> None:
        """Switch it on: :meth:`run` waits until it is up."""
        for name, text in _PROGRAMS.items():
            (self._home / name).write_text(text)
            (self._home / name).chmod(0o755)
        with (self._home / "consolelog").open("ab") as log:
            self._running = subprocess.Popen(
                self._words(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[self._line.fileno()],
                start_new_session=True,
            )
        self._line.close()

    def _words(self) -> list[str]:
        disks = [f"ubd{at}={path}" for at, path in enumerate(self._images)]
        return [
            *(_LINUX, f"umid={self.name}", f"uml_dir={self._home}", f"mem={_MEMORY}M"),
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"),
            *(f"init={self._home}/init", "panic=-1", *disks),
            *("con=null", "con0=null,fd:1", f"ssl0=fd:{self._line.fileno()}"),
            f"vec0:transport=tap,ifname={self.tap},gro=1",
            *(f"home={self._home}", f"name={self.name}", f"address={self.address}/24"),
            "programs=" + ":".join(_ours()),
        ]

    def run(self, command: str, timeout: float = PATIENCE) -> str:
        """Run a shell command in it; return what it printed.

        Raises
        ------
        CommandFailed
            If its exit status is not 0.
        """
        self._wait(timeout)

        async def ask() -> str:
            async with _Line(self._end, self._home) as inside:
                return await inside.run(command, timeout)

        return asyncio.run(ask())

    def _wait(self, timeout: float) -> None:
        """Wait until it listens: before that, its line may lose what is said."""
        self._end.settimeout(timeout)
        while not self._up:
            said = self._end.recv(64)
            if not said:
                console = (self._home / "consolelog").read_text(errors="replace")
                raise Failed(f"{self.name} ended: {console[-1000:]}")
            self._up = b"ready" in said

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
        """End it at once."""
        if self._running:
            os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
        self._end.close()


class NodeGuests:
    """Nodes with kernels of their own, on a bridge of theirs; a context manager.

    Attributes
    ----------
    address
        The host's own address on the bridge.
    """

    def __init__(self) -> None:
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
        """Switch on one more node, with disks of so many MiB.

        The first :meth:`NodeGuest.run` waits until it is up: several boot at a time.
        """
        node = NodeGuest(self._home, self._network, len(self.nodes) + 1, disks)
        self.nodes.append(node)
        run("ip", "tuntap", "add", node.tap, "mode", "tap")
        run("ip", "link", "set", node.tap, "master", self._bridge, "up")
        node.start()
        return node
