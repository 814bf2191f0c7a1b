# SPDX-License-Identifier: BSD-2-Clause
"""Towns: scratch clusters with real guests, and somebody who types and looks."""

import asyncio
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.tour.stage import Stage
from moorage.cli.tour.steps import KERNEL
from moorage.cli.tour.typist import Typist
from moorage.daemons import cleanup, process
from moorage.daemons import devcluster as scratches
from moorage.daemons.devcluster import Scratch
from moorage.node.hypervisors.kvm import Kvm
from moorage.testing.guest import Guest
from moorage.testing.guest_image import build, prepare
from support.node_guests import NodeGuest, NodeGuests
from support.qemu_pair import Lab

sys.path.insert(0, str(Path(__file__).parent))

from provided import Storage, storage

BUILT = Path(__file__).parents[2] / ".build" / "guest"
BIN = Path(sys.executable).parent


class Town(Typist):
    """A scratch cluster with real guests."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(scratch.environment(), io.StringIO())
        self.scratch = scratch
        self.stage = Stage(scratch, self)

    @property
    def path(self) -> Path:
        return self.scratch.path

    def refused(self, line: str) -> str:
        """Type a command that must be refused in a sentence; return what it says."""
        said = super().refused(line)
        assert "Traceback" not in said
        assert "unhandled" not in said
        return said

    def healthy(self) -> bool:
        """Say whether verify finds nothing, and no volume is lost or left."""
        self.stage.check_volumes()
        return bool(self.ask("gnt-cluster verify")["errors"] == [])

    # -- instances ------------------------------------------------------------------

    def guest(self, name: str, node: str, options: str = "-t diskless") -> None:
        """Add an instance that boots with a kernel of the node's."""
        kernel = KERNEL.format(self.scratch.guest)
        self.type(f"gnt-instance add {options} -n {node} --no-nics -H {kernel} {name}")

    def home(self, name: str) -> str:
        return self.stage.home(name)

    def disks(self, name: str) -> list[str]:
        return self.stage.disks_of(name)

    def uuid(self, disk: str) -> str:
        return str(self.stage.disk(disk)["uuid"])

    # -- inside them ------------------------------------------------------------------

    def kvm(self, node: str) -> Kvm:
        run = self.scratch.node(node).run / "kvm"
        return Kvm(run, self.scratch.address(node))

    def inside(self, name: str, command: str, node: str = "") -> str:
        """Run a shell command in a guest."""
        (row,) = self.ask(f"gnt-instance list -o uuid,pnode {name}")

        async def run() -> str:
            channel = self.kvm(node or row["pnode"]).channel(row["uuid"])
            async with Guest(channel) as guest:
                return await guest.run(command)

        return asyncio.run(run())

    def serials(self, name: str) -> set[str]:
        """Return the serial numbers of a guest's drives, as it sees them."""
        look = "for d in /sys/block/vd*; do [ -e $d ] && cat $d/serial && echo; done"
        return set(self.inside(name, f"{look}; true").split())

    def sees(self, name: str, disk: str) -> bool:
        return disk[:20] in self.serials(name)

    def device(self, name: str, disk: str) -> str:
        """Return the device in the guest, waiting until it is there."""
        find = (
            f'while :; do for d in /sys/block/vd*; do [ "$(cat $d/serial)" = '
            f"'{disk[:20]}' ] && echo /dev/${{d##*/}} && exit; done; usleep 50000; done"
        )
        return self.inside(name, find).strip()

    def write(self, name: str, disk: str) -> str:
        """Write a megabyte of random bytes to a disk; return its checksum."""
        at = self.device(name, disk)
        fill = f"dd if=/dev/urandom of={at} bs=64k count=16 2>/dev/null; sync"
        self.inside(name, fill)
        return self.checksum(name, disk)

    def checksum(self, name: str, disk: str) -> str:
        """Return the checksum of the first megabyte, read from the disk itself."""
        at = self.device(name, disk)
        look = "echo 3 > /proc/sys/vm/drop_caches; dd bs=64k count=16 2>/dev/null if="
        return self.inside(name, f"{look}{at} | sha256sum").split()[0]

    def size(self, name: str, disk: str) -> int:
        """Return the size in MiB that the guest sees."""
        at = self.device(name, disk).rpartition("/")[2]
        return int(self.inside(name, f"cat /sys/block/{at}/size")) // 2048


def left(directory: Path) -> list[str]:
    """Return what the machine still has of a directory: processes, loops, mounts."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "qemu-system" in line:
                line += f" in {entry.with_name('cwd').readlink()}/"
        except OSError:  # it ended meanwhile
            continue
        if f"{directory}/" in line and int(entry.parent.name) != os.getpid():
            found.append(line)
    loops = subprocess.check_output(["losetup", "-l", "-n", "-O", "BACK-FILE"])
    mounts = Path("/proc/self/mountinfo").read_text()
    lines = [*loops.decode().splitlines(), *mounts.splitlines()]
    return found + [line for line in lines if f"{directory}/" in line]


@contextmanager
def settled(nodes: int) -> Iterator[Town]:
    """Start a town; it is ended, and nothing of it left, whatever happens."""
    prepare(BUILT)
    at = Path(tempfile.mkdtemp(prefix="town-")) / "t"
    start = f"moorage up {at} --nodes {nodes} --guest {BUILT}"
    hands = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
    try:
        hands.type(start)
        yield Town(scratches.read(at))
    finally:
        if at.exists():
            scratches.down(at)
        at.parent.rmdir()
    assert left(at) == []


@pytest.fixture(scope="session")
def new_town() -> Callable[[int], Any]:
    """Return what starts a town of some nodes, as a context."""
    return settled


@pytest.fixture(scope="session")
def leftovers() -> Callable[[Path], list[str]]:
    """Return what tells what the machine still has of a directory."""
    return left


@pytest.fixture(scope="session")
def town() -> Iterator[Town]:
    """Return a town of three nodes that all tests share: each cleans up behind it."""
    with settled(3) as found:
        yield found


@pytest.fixture
def quay(tmp_path: Path) -> Iterator[Town]:
    """Return a cluster of one node with a real agent, and no guests that run."""
    at = tmp_path / "c"
    start = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
    try:
        start.type(f"moorage up {at} --nodes 1 --hypervisor fake")
        yield Town(scratches.read(at))
    finally:
        if at.exists():
            scratches.down(at)
    assert left(at) == []


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Return two nodes' hypervisors, without a cluster."""
    build(BUILT)
    made = Lab(BUILT)
    try:
        yield made
    finally:
        made.close()


class Hamlet(Typist):
    """A cluster whose nodes have kernels of their own, and LVM.

    The master runs on this machine. Each node has the disks ``/dev/ubda`` and
    ``/dev/ubdb``, and a volume group ``xenvg`` on the first one.
    """

    def __init__(self, path: Path, nodes: list[NodeGuest]) -> None:
        environ = {
            "MOORAGE_DIR": str(path / "master"),
            "MOORAGE_SOCKET": str(path / "master" / "luxi.sock"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        super().__init__(environ, io.StringIO())
        self.path = path
        self.nodes = nodes

    def found(self) -> None:
        """Make the cluster of all the nodes."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._let_wait, self.nodes))
        given = "--enabled-hypervisors fake --vg-name xenvg -N link= -B memory=128M"
        word = f"--token-file {self.path}"
        self.type(f"gnt-cluster init {given} {word}/node1.token hamlet")
        for node in self.nodes[1:]:
            self.type(f"gnt-node add {word}/{node.name}.token {node.name}")

    def _let_wait(self, node: NodeGuest) -> None:
        node.run("vgcreate -qq xenvg /dev/ubda")
        token = self.path / f"{node.name}.token"
        token.touch(mode=0o600)
        token.write_text(node.start_agent())

    def volumes(self, node: int = 0) -> dict[str, int]:
        """Return the logical volumes of a node, with their sizes in MiB."""
        ask = "lvs --noheadings --nosuffix --units m -o vg_name,lv_name,lv_size"
        rows = (line.split() for line in self.nodes[node].run(ask).splitlines())
        return {f"{vg}/{lv}": int(float(size)) for vg, lv, size in rows}


@pytest.fixture(scope="session")
def hamlet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hamlet]:
    """Return a cluster of two such nodes; each test cleans up behind it."""
    if BIN.is_relative_to("/tmp"):
        pytest.fail(
            f"an emulated node has a /tmp of its own, so it does not see {BIN}: run "
            "these tests from a clone elsewhere"
        )
    path = tmp_path_factory.mktemp("hamlet")
    path.chmod(0o700)
    with NodeGuests() as guests:
        found = Hamlet(path, [guests.add(768, 768), guests.add(768, 768)])
        try:
            found.found()
            yield found
        finally:
            for pid in list(cleanup.processes(path)):
                process.end(pid, patience=2.0)


@pytest.fixture
def qsd() -> Iterator[Storage]:
    yield from storage("qsd", "userspace")


@pytest.fixture
def loop() -> Iterator[Storage]:
    yield from storage("loop")


@pytest.fixture(params=["qsd", "loop"])
def either(request) -> Iterator[Storage]:
    access = {"qsd": "userspace", "loop": "kernelspace"}[request.param]
    yield from storage(request.param, access)
