# SPDX-License-Identifier: BSD-2-Clause
"""An agent dies while a provider's script runs: the script does not outlive the undo.

Agents and scripts are real processes, guests are fake.
"""

import io
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
HEAD = """#!/bin/sh
top=$(dirname "$0")/../..
v=$top/volumes/$VOL_NAME
slow() {
  if [ -e $top/slow-$1 ]; then echo $$ >$top/in-$1; sleep "$(cat $top/slow-$1)"; fi
}
"""
SCRIPTS = {
    "create": 'slow create; echo "$VOL_UUID" >"$v"; truncate -s 4M "$v"',
    "remove": 'rm -f "$v"',
    "attach": 'touch "$v.attached"; printf "\\nfake:file:$v"',
    "detach": 'slow detach; rm -f "$v.attached"',
    "grow": "true",
    "setinfo": "true",
    "verify": "true",
}


class Harbour:
    """A cluster of one node with a provider whose scripts can be slow."""

    def __init__(self, at: Scratch) -> None:
        self.scratch = at
        self.top = at.path
        self.hands = Typist(at.environment(), io.StringIO())
        (self.top / "volumes").mkdir()
        provider = self.top / "extstorage/slow"
        provider.mkdir(parents=True)
        for name, text in SCRIPTS.items():
            (provider / name).write_text(HEAD + text + "\n")
            (provider / name).chmod(0o755)
        (provider / "parameters.list").write_text("")

    def volumes(self) -> list[str]:
        """Return what is there once every slow script would have ended by itself."""
        return sorted(path.name for path in (self.top / "volumes").iterdir())

    def cut_short(self, script: str, line: str) -> tuple[int, Any]:
        """Kill the agent while a script of a job runs, and start it again.

        Returns the script's process id and the finished job.
        """
        pid = self.begin(script, line, 4)
        agent = int(self.scratch.node("node1").pid.read_text())
        os.kill(agent, signal.SIGKILL)
        assert process.wait_until(lambda: not process.alive(agent), 30)
        (self.top / f"slow-{script}").unlink()
        devcluster.start_agent(self.scratch, "node1")
        assert process.wait_until(self.idle, 60)
        jobs = self.hands.ask("gnt-job list -o id,status")
        job = max(jobs, key=lambda job: int(job["id"]))
        return pid, job

    def begin(self, script: str, line: str, seconds: int) -> int:
        """Let a job begin whose script is slow; return the script's process id."""
        (self.top / f"slow-{script}").write_text(f"{seconds}")
        sign = self.top / f"in-{script}"
        self.hands.type(line)
        assert process.wait_until(lambda: sign.exists() and sign.read_text() != "", 60)
        return int(sign.read_text())

    def idle(self) -> bool:
        jobs = self.hands.ask("gnt-job list -o status")
        return all(job["status"] in ("success", "error", "canceled") for job in jobs)


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    at = tmp_path / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 1 --hypervisor fake")
        yield Harbour(devcluster.read(at))
    finally:
        if at.exists():
            devcluster.down(at)


@pytest.mark.parametrize("name", ["", "data1"])
def test_a_create_does_not_end_after_its_undo(harbour: Harbour, name: str) -> None:
    """A volume that only a name tells from others' is not destroyed unseen."""
    line = f"gnt-disk add --submit -t ext -p slow -s 4M {name}"
    pid, job = harbour.cut_short("create", line)
    assert job["status"] == "error"
    assert not process.alive(pid)
    time.sleep(5)  # longer than the script would have needed
    assert harbour.volumes() == []
    disks = harbour.hands.ask("gnt-disk list -o name,quarantine")
    assert [disk["name"] for disk in disks] == [name] * bool(name)
    if name:
        assert "nobody can tell" in disks[0]["quarantine"]
        harbour.hands.type(f"gnt-disk remove -f --volume-is-ours {name}")
    assert harbour.hands.ask("gnt-disk list -o name") == []


def test_a_detach_does_not_end_after_its_undo(harbour: Harbour) -> None:
    hands = harbour.hands
    hands.type("gnt-instance add -t diskless --no-nics -n node1 --no-install web1")
    hands.type("gnt-instance startup web1")
    hands.type("gnt-disk add -t ext -p slow -s 4M data1")
    hands.type("gnt-disk attach data1 web1")
    pid, job = harbour.cut_short("detach", "gnt-disk detach --submit data1")
    assert not process.alive(pid)
    time.sleep(5)
    (disk,) = hands.ask("gnt-disk list -o name,instance,quarantine")
    assert not disk["quarantine"]
    attached = any(name.endswith(".attached") for name in harbour.volumes())
    assert attached == (disk["instance"] == "web1") == (job["status"] == "error")


def test_a_silent_script_is_ended_on_request(harbour: Harbour) -> None:
    line = "gnt-disk add --submit -t ext -p slow -s 4M"
    pid = harbour.begin("create", line, 600)
    (job,) = harbour.hands.ask("gnt-job list --running -o id")
    harbour.hands.type(f"gnt-job cancel --kill --yes-do-it {job['id']}")
    assert process.wait_until(harbour.idle, 90)
    assert not process.alive(pid)
    assert harbour.volumes() == []
    assert harbour.hands.ask("gnt-disk list -o name") == []


def test_a_script_is_ended_when_its_job_was_cancelled_before(harbour: Harbour) -> None:
    """People cancel first, see that it takes long, and then insist."""
    line = "gnt-disk add --submit -t ext -p slow -s 4M"
    pid = harbour.begin("create", line, 600)
    (job,) = harbour.hands.ask("gnt-job list --running -o id")
    harbour.hands.type(f"gnt-job cancel {job['id']}")
    time.sleep(1)
    assert process.alive(pid)
    harbour.hands.type(f"gnt-job cancel --kill --yes-do-it {job['id']}")
    assert process.wait_until(harbour.idle, 90)
    assert not process.alive(pid)
    assert harbour.volumes() == []
    assert harbour.hands.ask("gnt-disk list -o name") == []
