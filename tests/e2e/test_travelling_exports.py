# SPDX-License-Identifier: BSD-2-Clause
"""Exports that lie on another node: real files between the processes of two agents."""

import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

MIB = 1 << 20
SIZE = 12
WAIT = 120.0
PORTS = range(8102, 8102 + 256)
IMPORT = "gnt-backup import --src-node node2 --src-dir a1 -n node1"


class Town:
    """Two nodes with fake guests, images of their own, and exports of their own.

    Attributes
    ----------
    data
        What the disk of *a1*, on node1, holds; its export lies on node2.
    """

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environ = {"MOORAGE_SOCKET": f"{scratch.root}/master/luxi.sock"}
        self.hands = Typist({**environ, "PATH": programs}, io.StringIO())
        self.data = os.urandom(SIZE * MIB)
        disk = f"--disk 0:size={SIZE}M,name=d1"
        self.hands.type(f"gnt-instance add -t file {disk} --no-nics -n node1 a1")
        self.volume("d1").write_bytes(self.data)

    def volume(self, disk: str) -> Path:
        (told,) = self.hands.ask(f"gnt-disk list -o volume {disk}")
        return Path(told["volume"])

    def exports(self, node: str) -> list[str]:
        folder = self.scratch.path / "export" / node
        found = folder.rglob("*") if folder.exists() else iter(())
        return sorted(str(path.relative_to(folder)) for path in found)

    def instances(self) -> list[str]:
        return [one["name"] for one in self.hands.ask("gnt-instance list -o name")]

    def images(self) -> int:
        return sum(1 for _ in self.volume("d1").parent.iterdir())

    def begins(self) -> None:
        """Let a slow import begin, and wait until some of it has come."""
        self.hands.type(f"{IMPORT} --rate 1M --submit a9")

        def some() -> bool:
            folder = self.scratch.path / "export" / "node1"
            found = list(folder.glob("a1+*.new/disk0.qcow2"))
            return any(path.stat().st_size > MIB for path in found)

        assert process.wait_until(some, WAIT)

    def dies(self, node: str) -> None:
        """Kill the agent of a node, and start it again."""
        agent = int(self.scratch.node(node).pid.read_text())
        os.kill(agent, signal.SIGKILL)
        assert process.wait_until(lambda: not process.alive(agent), WAIT)
        devcluster.start_agent(self.scratch, node)

    def last_job(self) -> dict[str, Any]:
        def idle() -> bool:
            jobs = self.hands.ask("gnt-job list -o status")
            return {job["status"] for job in jobs} <= {"success", "error", "canceled"}

        assert process.wait_until(idle, WAIT)
        jobs = self.hands.ask("gnt-job list -o id,status,opresult")
        return dict(max(jobs, key=lambda job: int(job["id"])))

    def listens(self) -> bool:
        """Whether anybody listens at the ports of migrations and exports here."""
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        places = [line.split()[1] for line in lines if line.split()[3] == "0A"]
        address = self.scratch.address("node2").split(".")
        at = "".join(f"{int(one):02X}" for one in reversed(address))
        return any(
            place.startswith(f"{at}:") and int(place.partition(":")[2], 16) in PORTS
            for place in places
        )


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Town:
    return Town(scratch_of("--nodes 2 --hypervisor fake"))


def test_an_export_travels_both_ways(town: Town) -> None:
    """Its disk stays on node1: made there, it lies on node2, and comes back."""
    town.hands.type("gnt-backup export -n node2 a1")
    assert town.exports("node1") == []
    whole = ["a1", "a1/disk0.qcow2", "a1/manifest.json"]
    assert town.exports("node2") == whole
    town.hands.type("gnt-backup verify a1")
    town.hands.type(f"{IMPORT} --disk 0:name=d2 a2")
    assert town.volume("d2").read_bytes() == town.data
    assert town.exports("node1") == []
    town.hands.type("gnt-instance shutdown a1")  # a fake guest copies nothing
    town.hands.type("gnt-backup export -n node2 --disk d1")
    from_there = "--disk-only --src-node node2 --src-dir disk+d1 -n node1"
    town.hands.type(f"gnt-backup import {from_there} d3")
    assert town.volume("d3").read_bytes() == town.data
    assert town.exports("node1") == []
    assert not town.listens()

    dump = town.scratch.path / "export/node2/a1/disk0.qcow2"
    content = bytearray(dump.read_bytes())
    content[-MIB] ^= 1
    dump.write_bytes(content)
    images, known = town.images(), town.instances()
    refused = town.hands.refused(f"{IMPORT} a9")
    assert "is not what was exported: what came has another checksum" in refused
    assert (town.images(), town.instances()) == (images, known)
    assert town.exports("node1") == []


def test_whichever_end_dies_nothing_half_made_is_left(town: Town) -> None:
    town.hands.type("gnt-backup export -n node2 a1")
    images, known, lies = town.images(), town.instances(), town.exports("node2")
    for node in ("node1", "node2"):
        town.begins()
        town.dies(node)
        job = town.last_job()
        assert job["status"] == "error", job
        assert (town.images(), town.instances()) == (images, known)
        assert town.exports("node1") == []
        assert town.exports("node2") == lies
        assert not town.listens()

    town.begins()
    (job,) = town.hands.ask("gnt-job list --running -o id")
    town.hands.type(f"gnt-job cancel {job['id']}")
    assert town.last_job()["status"] in ("error", "canceled")
    assert town.exports("node1") == []
    assert process.wait_until(lambda: not town.listens(), WAIT)
    town.hands.type(f"{IMPORT} --disk 0:name=d2 a2")
    assert town.volume("d2").read_bytes() == town.data
