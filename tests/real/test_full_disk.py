# SPDX-License-Identifier: BSD-2-Clause
"""The master's file system is full in the middle of an attach, and has room again.

The master ends, waits for room, and takes the job back or carries it on; what is asked
for afterwards is not reverted, and no disk gets a second writer.
"""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from moorage.api.luxi import LuxiClient
from moorage.cli.tour.claims import BrokenClaim
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.real

BIN = Path(sys.executable).parent
LONG = 90.0
"""Seconds that anything may last on a busy machine."""


class Small:
    """A cluster whose master lives on a file system of a few MiB."""

    def __init__(self, at: Path) -> None:
        path = f"{BIN}:{os.environ['PATH']}"
        Typist({"PATH": path}, io.StringIO()).type(
            f"moorage up {at} --nodes 2 --hypervisor sim"
        )
        self.scratch: Scratch = devcluster.read(at)
        self.root = self.scratch.master.root
        self.hands = Typist(self.scratch.environment(), io.StringIO())
        self.hands.type("moorage master stop")
        kept = self.root.with_name("kept")
        self.root.rename(kept)
        self.root.mkdir(mode=0o700)
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", self.root]
        subprocess.run(mount, check=True)
        for file in [path for path in kept.rglob("*") if path.is_file()]:
            target = self.root / file.relative_to(kept)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            target.write_bytes(file.read_bytes())
            target.chmod(0o600)
        self.hands.type("moorage master start")

    @property
    def ballast(self) -> Path:
        return self.root / "ballast"

    def fill(self) -> None:
        """Leave not one byte."""
        for size in (1 << 16, 1):
            try:
                with self.ballast.open("ab", buffering=0) as file:
                    while True:
                        file.write(b"x" * size)
            except OSError:
                continue

    def make_room(self) -> None:
        self.ballast.unlink()

    def submit(self, opcode: dict[str, object]) -> int:
        with LuxiClient(str(self.scratch.master.socket)) as luxi:
            return luxi.submit_job([opcode])

    def down(self) -> None:
        process.end(process.holder(self.scratch.master.supervisor) or 0) if (
            process.holder(self.scratch.master.supervisor)
        ) else None
        subprocess.run(["umount", "--lazy", self.root], check=False)
        devcluster.down(self.scratch.path)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    found = Small(tmp_path / "c")
    yield found
    found.down()


def test_a_full_disk_in_the_middle_of_an_attach(small: Small) -> None:
    hands = small.hands
    hands.type("gnt-disk add -t ext -p san -s 8M --node node1 a")
    hands.type("gnt-instance add -t diskless -n node2 w2")
    small.fill()
    attach = {"OP_ID": "OP_DISK_ATTACH", "disk": "a", "instance_name": "w2"}
    said = hands.refused("gnt-disk attach a w2")
    assert str(small.root) in said
    told = ""

    def waits() -> bool:  # its log may be where there is no room
        nonlocal told
        with suppress(BrokenClaim):  # it still answers
            told = hands.refused("gnt-node list")
        return "the master waits until it can write" in told

    assert process.wait_until(waits, LONG), told
    assert f"make room in {small.root}" in told
    # Its supervisor cannot write its log, and goes on all the same.
    supervisor = process.holder(small.scratch.master.supervisor)
    killed = process.holder(small.scratch.master.lock)
    assert supervisor
    assert killed
    os.kill(killed, signal.SIGKILL)
    assert process.wait_until(
        lambda: process.holder(small.scratch.master.lock) not in (None, killed), LONG
    )
    assert process.holder(small.scratch.master.supervisor) == supervisor
    small.make_room()
    assert "The master is up" in hands.type("moorage master start")
    hands.type("gnt-instance modify -B memory=200 w2")
    hands.type("gnt-instance failover -f -n node1 w2")
    hands.type("gnt-disk rename a b")
    job = small.submit(attach | {"disk": "b"})
    hands.type(f"gnt-job wait {job}")
    hands.type("moorage master stop")
    hands.type("moorage master start")
    (row,) = hands.ask("gnt-instance list -o name,pnode,be/maxmem,status w2")
    assert (row["pnode"], row["status"]) == ("node1", "running")
    assert row["be/maxmem"] == 200
    assert hands.type("gnt-cluster verify").endswith("* No problem found\n")
