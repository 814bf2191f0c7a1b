# SPDX-License-Identifier: BSD-2-Clause
"""What the steps of the tour share: the cluster, the typist, and who is who."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from moorage.client import Client, Socket
from moorage.daemons import devcluster as scratches
from moorage.daemons.devcluster import Scratch
from moorage.testing.storage import San

from .claims import claim
from .guests import Inside, RealGuest, SimGuest
from .typist import Typist


class Stage:
    """Where the tour takes place.

    Attributes
    ----------
    shared, local, user
        Disk templates and providers that the steps use: one that has a block device,
        and one that has a URI alone.
    """

    def __init__(self, scratch: Scratch, typist: Typist) -> None:
        self.scratch = scratch
        self.typist = typist
        self.simulated = scratch.hypervisor == "sim"
        self.device_provider = "san" if self.simulated else "loop"
        self.user_provider = "usersan" if self.simulated else "qsd"
        self.notes: dict[str, Any] = {}

    def disk(self, ref: str) -> dict[str, Any]:
        """Return what ``gnt-disk info`` says."""
        return dict(self.typist.ask(f"gnt-disk info {ref}")[0])

    def disks_of(self, instance: str) -> list[str]:
        """Return the uuids of an instance's disks, in order."""
        (row,) = self.typist.ask(f"gnt-instance list -o disk.uuids {instance}")
        return list(row["disk.uuids"])

    def home(self, instance: str) -> str:
        """Return the node of an instance."""
        (row,) = self.typist.ask(f"gnt-instance list -o pnode {instance}")
        return str(row["pnode"])

    def status(self, instance: str) -> str:
        """Return the status of an instance."""
        (row,) = self.typist.ask(f"gnt-instance list -o status {instance}")
        return str(row["status"])

    def inside(self, instance: str) -> Inside:
        """Return somebody inside a guest, who finds it wherever it is."""
        (row,) = self.typist.ask(f"gnt-instance list -o uuid {instance}")
        kind = SimGuest if self.simulated else RealGuest
        return kind(self.scratch, row["uuid"], lambda: self.home(instance))

    def client(self) -> Client:
        """Return the way to the master."""
        return Client(Socket(str(self.scratch.master.root / "luxi.sock")))

    def accelerator(self) -> str:
        """Return what executes the guests, and how that is known."""
        fields = "accelerator,accelerator.reason"
        row = self.typist.ask(f"gnt-node list -o {fields}")[0]
        return f"{row['accelerator']} ({row['accelerator.reason']})"

    def volumes(self) -> set[str]:
        """Return the names of all volumes and images that are on the storage."""
        if self.simulated:
            san = San.in_directory(Path(self.scratch.root) / "san")
            return {*san.volumes, *(path.rpartition("/")[2] for path in san.files)}
        images = (self.scratch.path / "shared").rglob("*")
        return {path.name for path in images if _is_image(path)}

    def known_volumes(self) -> set[str]:
        """Return the names of the volumes of all disks that the cluster knows."""
        rows = self.typist.ask("gnt-disk list -o logical_id")
        return {str(row["logical_id"][-1]).rpartition("/")[2] for row in rows}

    def check_volumes(self) -> None:
        """Claim that storage and configuration name the same volumes."""
        there, known = self.volumes(), self.known_volumes()
        claim(there == known, f"volumes {there ^ known} are in one place alone")

    @contextmanager
    def bridge(self) -> Iterator[str]:
        """Yield a bridge for guests, which is gone again afterwards."""
        if self.simulated:
            yield "br0"
            return
        digest = sha256(self.scratch.root.encode()).hexdigest()
        name = f"moor{digest[:8]}"
        self.typist.say(f"ip link add {name} type bridge; ip link set {name} up")
        _ip("link", "add", name, "type", "bridge")
        try:
            _ip("link", "set", name, "up")
            yield name
        finally:
            _ip("link", "del", name)

    def lose_power(self, node: str) -> int:
        """Kill all that runs on a node; return how many processes that were."""
        killed = scratches.lose_power(self.scratch, node)
        if self.simulated:
            San.in_directory(Path(self.scratch.root) / "san").lose_power(node)
        return killed

    def until(self, true: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until a claim is true."""
        deadline = time.monotonic() + seconds
        while not true():
            claim(time.monotonic() < deadline, f"{what}: not within {seconds:g} s")
            time.sleep(0.02)


def _ip(*words: str) -> None:
    """Change the machine's network, as root."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    claim(done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}")


def _is_image(path: Path) -> bool:
    """Whether a file holds a volume; providers keep leases and notes beside them."""
    volume = ".disk" in path.name or path.name.endswith(".snap")
    return path.is_file() and volume and path.suffix not in (".lease", ".info")
