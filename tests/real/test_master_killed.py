# SPDX-License-Identifier: BSD-2-Clause
"""``kill -9`` of the master and of agents, in the middle of attach and of detach.

Whatever the moment: the job ends, the state is the one before it or the one after it,
and the guest, the storage and the configuration tell the same.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.daemons import devcluster, process

pytestmark = pytest.mark.real

DELAYS = (0, 5, 10, 20, 40, 80, 160)
"""Milliseconds between the acknowledgement of the job and the kill."""
ENDED = ("success", "error", "canceled")
OP_IDS = {"attach": "OP_DISK_ATTACH", "detach": "OP_DISK_DETACH"}


class Pier:
    """A town of two nodes with a guest each, and a disk that goes to and fro."""

    def __init__(self, town: Any) -> None:
        self.town = town
        town.guest("web1", "node1")
        town.guest("web2", "node2")
        town.type("gnt-disk add -t ext -p qsd -s 16M data1")
        self.disk = town.uuid("data1")
        town.type("gnt-disk attach data1 web1")
        self.sum = town.write("web1", self.disk)
        town.type("gnt-disk detach data1")
        town.inside("web2", "true")
        self.epoch = 0
        self.seen: list[str] = []

    # -- what happens -------------------------------------------------------------

    def submit(self, verb: str) -> int:
        opcode = {"OP_ID": OP_IDS[verb], "disk": "data1"}
        if verb == "attach":
            opcode["instance_name"] = "web1"
        with LuxiClient(str(self.town.scratch.master.socket)) as luxi:
            return int(luxi.submit_job([opcode]))

    def kill(self, pid_file: Path) -> None:
        pid = int(pid_file.read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        assert process.wait_until(lambda: not process.alive(pid), 120)

    def kill_master(self) -> None:
        self.kill(self.town.scratch.master.pid)

    def kill_agent(self) -> None:
        self.kill(self.town.scratch.node("node1").pid)

    def start_master(self) -> None:
        self.town.type("moorage master start")

    def start_agent(self) -> None:
        devcluster.start_agent(self.town.scratch, "node1")

    def status(self, job: int) -> str:
        """Wait for the end of a job; return its status."""
        seen: list[Any] = [None]
        with LuxiClient(str(self.town.scratch.master.socket)) as luxi:
            while seen[0] not in ENDED:
                change = luxi.wait_for_job_change(job, ["status"], (seen, None), 300)
                assert change != "nochange", f"job {job} stays {seen[0]}"
                seen = change[0]
        return str(seen[0])

    # -- what is there ------------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Say what the configuration says."""
        told = self.town.stage.disk("data1")
        assert told["epoch"] >= self.epoch
        assert told["quarantine"] is None
        self.epoch = told["epoch"]
        assert told["instance"] in (None, "web1")
        return bool(told["instance"])

    def daemons(self) -> list[str]:
        """Return the command lines of the daemons that serve a volume."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # it ended meanwhile
                continue
            if "qemu-storage-daemon" in line and f"{self.town.path}/" in line:
                found.append(line)
        return found

    def lease(self) -> list[str]:
        """Return which nodes may write, and how, as the provider has it."""
        leases = (self.town.path / "shared" / "qsd").glob("*.lease")
        lines = [line for path in leases for line in path.read_text().splitlines()]
        return [line.rpartition(" ")[0] for line in lines]

    def check(self, verb: str, status: str) -> None:
        """Fail unless everything is as before the job, or as after it."""
        attached = self.attached
        assert attached == ((verb == "attach") == (status == "success"))
        self.seen.append(f"{verb}: {status}")
        assert self.town.sees("web1", self.disk) == attached
        assert self.town.serials("web2") == set()
        assert self.lease() == (["node1 exclusive"] if attached else [])
        assert len(self.daemons()) == int(attached)
        assert all("/node1/" in line for line in self.daemons())
        assert self.town.healthy()

    def settle(self, *, attached: bool) -> None:
        """Bring the disk where it is wanted, by the next command that is typed."""
        if self.attached != attached:
            words = "attach data1 web1" if attached else "detach data1"
            self.town.type(f"gnt-disk {words}")
            self.check("attach" if attached else "detach", "success")
        if attached:
            assert self.town.checksum("web1", self.disk) == self.sum


@pytest.fixture(scope="module")
def pier(new_town: Callable[[int], Any]) -> Iterator[Pier]:
    with new_town(2) as town:
        yield Pier(town)


def sweep(pier: Pier, happens: Callable[[], None], delays: tuple[int, ...]) -> None:
    """Attach and detach, and let something happen so many milliseconds later."""
    pier.seen.clear()
    for delay in delays:
        for verb in ("attach", "detach"):
            pier.settle(attached=verb == "detach")
            job = pier.submit(verb)
            time.sleep(delay / 1000)
            happens()
            pier.check(verb, pier.status(job))
    pier.settle(attached=False)


@pytest.mark.requirement("S0-28", "S0-29", "S3-22", "S3-24")
def test_the_master_dies(pier: Pier) -> None:
    def happens() -> None:
        pier.kill_master()
        pier.start_master()

    sweep(pier, happens, DELAYS)
    assert {"attach: error", "detach: error"} <= set(pier.seen)  # it met the middle


def test_the_agent_dies(pier: Pier) -> None:
    def happens() -> None:
        pier.kill_agent()
        pier.start_agent()

    sweep(pier, happens, (10, 30, 60, 120))


def test_both_die_and_the_agent_comes_back_last(pier: Pier) -> None:
    def happens() -> None:
        pier.kill_agent()
        pier.kill_master()
        pier.start_master()
        time.sleep(0.3)  # the new master meets a node that does not answer
        pier.start_agent()

    sweep(pier, happens, (20, 80))


def test_the_master_dies_again_while_it_mends(pier: Pier) -> None:
    def happens() -> None:
        for pause in (0.0, 0.05):
            pier.kill_master()
            pier.start_master()
            time.sleep(pause)
        pier.kill_master()
        pier.start_master()

    sweep(pier, happens, (15, 50))


def test_the_guest_dies_with_the_disk_under_way(pier: Pier) -> None:
    """A guest that is gone has no disk; the instance starts again with its own."""
    pier.settle(attached=True)
    (row,) = pier.town.ask("gnt-instance list -o uuid web1")
    pid = pier.town.scratch.node("node1").run / "kvm" / row["uuid"] / "pid"
    pier.kill(pid)
    pier.town.type("gnt-disk detach data1")
    assert not pier.attached
    assert pier.lease() == []
    assert pier.daemons() == []
    pier.town.type("gnt-disk attach data1 web2")
    assert pier.town.checksum("web2", pier.disk) == pier.sum
    pier.town.type("gnt-disk detach data1")
    pier.town.type("gnt-instance startup web1")
    pier.town.type("gnt-disk attach data1 web1")
    assert pier.town.checksum("web1", pier.disk) == pier.sum
    pier.town.type("gnt-disk detach data1")
    assert pier.town.healthy()
