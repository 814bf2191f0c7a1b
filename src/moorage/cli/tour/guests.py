# SPDX-License-Identifier: BSD-2-Clause
"""Somebody inside a guest: writes to disks, and says what is on them.

Real guests are spoken to over their channel. Simulated ones have no inside, so what
they write goes to the simulated storage, through the disks that they have plugged.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar

from moorage.daemons.devcluster import Scratch
from moorage.node.hypervisors.kvm import Kvm
from moorage.testing.guest import PATIENCE, Guest
from moorage.testing.storage import San

from .claims import BrokenClaim, claim

T = TypeVar("T")

_WRITER = """
rm -f /tmp/stop; i=0
( while [ ! -e /tmp/stop ]; do
    i=$((i+1)); echo "line $i" >> /mnt/{mark}/log; usleep 1000
  done; touch /tmp/stopped ) > /dev/null 2>&1 &
"""
_UNBROKEN = "awk '$0 != \"line \" NR { exit 1 } END { print NR }' /mnt/%s/log"


class Inside(Protocol):
    """What the tour does inside a guest; disks are named by uuid."""

    def greet(self) -> str:
        """Return what the guest says of itself, once it answers."""

    def fill(self, disk: str) -> str:
        """Make a file system with a file of random bytes; return the checksum."""

    def checksum(self, disk: str) -> str:
        """Return the checksum of that file, read from the disk."""

    def size(self, disk: str) -> int:
        """Return the disk's size in MiB, as the guest sees it."""

    def start_writing(self, disk: str) -> None:
        """Write numbered lines to the disk, without end."""

    def stop_writing(self, disk: str) -> int:
        """Stop, and return how many lines are there; none may be missing."""

    def take_address(self, address: str) -> None:
        """Give the newest network card an IP address, as a system's boot would."""

    def start_pinging(self, address: str) -> None:
        """Send a packet to an address five times a second, without end."""

    def stop_pinging(self) -> tuple[int, int]:
        """Stop, and return how many packets were sent, and how many came back."""


class RealGuest:
    """A guest of QEMU, wherever it runs."""

    def __init__(self, scratch: Scratch, uuid: str, home: Callable[[], str]) -> None:
        self._scratch = scratch
        self._uuid = uuid
        self._home = home

    def greet(self) -> str:
        """Return kernel and origin of the system."""
        told = "cat /etc/moorage-system 2>/dev/null || echo booted from a kernel file"
        return self._run(f"uname -r; {told}").replace("\n", ", ").strip(", ")

    def fill(self, disk: str) -> str:
        """Make a file system with a file of random bytes; return the checksum."""
        mark = self._mount(disk, fresh=True)
        return self._run(
            f"dd if=/dev/urandom of=/mnt/{mark}/file bs=64k count=64 2>/dev/null; "
            f"sync; sha256sum < /mnt/{mark}/file; umount /mnt/{mark}"
        ).split()[0]

    def checksum(self, disk: str) -> str:
        """Return the checksum of that file, read from the disk."""
        mark = self._mount(disk)
        told = self._run(f"sha256sum < /mnt/{mark}/file; umount /mnt/{mark}")
        return told.split()[0]

    def size(self, disk: str) -> int:
        """Return the disk's size in MiB."""
        return self._with(lambda guest: guest.size(disk)) >> 20

    def start_writing(self, disk: str) -> None:
        """Write numbered lines to the disk, without end."""
        mark = self._mount(disk)
        self._run(f"rm -f /mnt/{mark}/log")
        self._run(_WRITER.format(mark=mark))

    def stop_writing(self, disk: str) -> int:
        """Stop, drop the caches, and count the lines that the disk has."""
        mark = disk[:8]
        self._run("touch /tmp/stop; while [ ! -e /tmp/stopped ]; do usleep 9000; done")
        self._run("rm -f /tmp/stopped")
        self._run(f"umount /mnt/{mark}; echo 3 > /proc/sys/vm/drop_caches")
        self._mount(disk)
        lines = self._run(f"{_UNBROKEN % mark}; umount /mnt/{mark}")
        return int(lines.split()[0])

    def take_address(self, address: str) -> None:
        """Give the newest network card an IP address."""
        self._run(
            "while ! ip link show eth0 >/dev/null 2>&1; do usleep 50000; done; "
            f"ip addr add {address}/24 dev eth0; ip link set eth0 up"
        )

    def start_pinging(self, address: str) -> None:
        """Send a packet to an address five times a second, without end."""
        self._run(
            f"for n in $(seq 20); do ping -c 1 -W 2 {address} >/dev/null && exit; done;"
            " ip addr >&2; arp -an >&2; exit 1"
        )
        self._run(f"ping -i 0.2 {address} > /tmp/pings 2>&1 &")

    def stop_pinging(self) -> tuple[int, int]:
        """Stop, and return how many packets were sent, and how many came back."""
        self._run("sleep 1; kill -INT $(pidof ping); sleep 0.2")
        sent, received = re.findall(r"(\d+) packets", self._run("cat /tmp/pings"))[:2]
        return int(sent), int(received)

    def _mount(self, disk: str, *, fresh: bool = False) -> str:
        """Mount a disk that has a file system, or gets one; return its mark."""
        mark = disk[:8]
        device = self._with(lambda guest: guest.disk(disk))
        made = f"mke2fs {device} >/dev/null 2>&1;" if fresh else ""
        self._run(f"{made} mkdir -p /mnt/{mark}; mount -t ext2 {device} /mnt/{mark}")
        return mark

    def _run(self, command: str, patience: float = PATIENCE) -> str:
        return self._with(lambda guest: guest.run(command, patience))

    def _with(self, what: Callable[[Guest], Awaitable[T]]) -> T:
        async def work() -> T:
            node = self._home()
            run = self._scratch.node(node).run / "kvm"
            channel = Kvm(run, self._scratch.address(node)).channel(self._uuid)
            async with Guest(channel) as guest:
                return await what(guest)

        return asyncio.run(work())


class SimGuest:
    """A guest that is a record, and writes through the disks that it has plugged."""

    def __init__(self, scratch: Scratch, uuid: str, home: Callable[[], str]) -> None:
        self._san = San.in_directory(Path(scratch.root) / "san")
        self._uuid = uuid
        self._home = home

    def greet(self) -> str:
        """Return that it runs."""
        state = self._state()["state"]
        claim(state == "running", f"the guest is {state}")
        return "a simulated guest, running"

    def fill(self, disk: str) -> str:
        """Write something of its own to the volume; return the checksum."""
        self._write(disk, f"written by {self._uuid}")
        return self.checksum(disk)

    def checksum(self, disk: str) -> str:
        """Return the checksum of what the volume holds."""
        data = str(self._volume(disk)["data"])
        return sha256(data.encode()).hexdigest()

    def size(self, disk: str) -> int:
        """Return the size that it was told last."""
        sizes = self._record().get("sizes", {})
        return int(sizes.get(disk, self._volume(disk)["size"]))

    def start_writing(self, disk: str) -> None:
        """Write the first lines."""
        self._write(disk, self._volume(disk)["data"] + "\n" + "line\n" * 100)

    def stop_writing(self, disk: str) -> int:
        """Write more lines, and count them all."""
        self._write(disk, self._volume(disk)["data"] + "line\n" * 100)
        return str(self._volume(disk)["data"]).count("line\n")

    def take_address(self, address: str) -> None:
        """Claim that there is a card with a cable."""
        claim(bool(self._links()), f"nothing could have {address}")

    def start_pinging(self, address: str) -> None:
        """Claim that there is a card with a cable."""
        self.take_address(address)

    def stop_pinging(self) -> tuple[int, int]:
        """Return that every packet came back, if there is a cable still."""
        return 10, 10 * bool(self._links())

    def _links(self) -> list[str]:
        """Return the bridges that its cards are in."""
        record = self._record()
        cards = record["state"]["cards"] or ()
        return [link for _, link, _ in map(record["wires"].get, cards) if link]

    def _record(self) -> dict[str, Any]:
        return self._san.guests[f"{self._home()} {self._uuid}"]

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._record()["state"]
        return state

    def _volume(self, disk: str) -> dict[str, Any]:
        """Return the volume or file behind a disk that is plugged."""
        claim(disk in self._state()["disks"], f"the guest has no disk {disk}")
        place = self._place(disk)
        found = self._san.files.get(place) or self._san.volumes.get(place)
        if found is None:
            raise BrokenClaim(f"there is no volume behind disk {disk}")
        return found

    def _place(self, disk: str) -> str:
        place = str(self._record()["drives"][disk])
        return place.removeprefix("/dev/")

    def _write(self, disk: str, data: str) -> None:
        new = self._volume(disk) | {"data": data}
        place = self._place(disk)
        records = self._san.files if place in self._san.files else self._san.volumes
        records[place] = new
