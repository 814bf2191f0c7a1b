# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for the disk of a real guest that writes, and ``kill -9`` meanwhile.

Whatever is killed, and when: the job ends, the disk has its old volume or its new one,
no third volume is left, and not a line that the guest wrote is lost.
"""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.daemons import devcluster, process

pytestmark = pytest.mark.real

ENDED = ("success", "error", "canceled")
SIZE = 24
"""MiB."""
RATE = 24
"""MiB a second: so that something can happen meanwhile."""
STORAGE = (
    {"disk_template": "ext", "provider": "qsd"},
    {"disk_template": "ext", "provider": "loop"},
    {"disk_template": "sharedfile"},
)
START = """mount -t ext4 {0} /mnt; rm -f /stop; cd /; (i=$(wc -l < /mnt/log)
    while [ ! -e /stop ]; do i=$((i+1)); echo $i >> /mnt/log; sync; usleep 20000; done \
    ) </dev/null >/dev/null 2>&1 &"""
STOP = "touch /stop; usleep 500000; umount /mnt"
LINES = """echo 3 > /proc/sys/vm/drop_caches; n=$(wc -l < /mnt/log)
    head -n $n /mnt/log > /tmp/seen; seq 1 $n | cmp - /tmp/seen && echo $n"""


class Yard:
    """A town of one node, with a guest that writes a line after the other."""

    def __init__(self, town: Any) -> None:
        self.town = town
        town.guest("web1", "node1")
        town.type(f"gnt-disk add -t sharedfile -s {SIZE}M data1")
        self.disk = town.uuid("data1")
        town.type("gnt-disk attach data1 web1")
        device = town.device("web1", self.disk)
        town.inside(
            "web1", f"mke2fs -q {device} >/dev/null; mount -t ext4 {device} /mnt"
        )
        fill = "dd if=/dev/urandom of=/mnt/fill bs=1M count=12 2>/dev/null"
        town.inside("web1", f"{fill}; touch /mnt/log; umount /mnt")
        self.start()
        self.turn = 0
        self.lines = 0
        self.seen: list[str] = []

    def start(self) -> None:
        """Let the guest write."""
        self.town.inside("web1", START.format(self.town.device("web1", self.disk)))

    def check_lines(self) -> None:
        """Fail if a line is missing of those that were there at any time."""
        found = int(self.town.inside("web1", LINES))
        assert found >= self.lines
        self.lines = found

    # -- conversions ----------------------------------------------------------------

    def submit(self, rate: int = RATE) -> int:
        self.turn += 1
        to = STORAGE[self.turn % len(STORAGE) - 1]
        opcode = {"OP_ID": "OP_DISK_CONVERT", "disk": "data1", "rate": rate, **to}
        with LuxiClient(str(self.town.scratch.master.socket)) as luxi:
            return int(luxi.submit_job([opcode]))

    def at(self, job: int, word: str) -> None:
        """Wait until a job does what a word names, or ends."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            task = self.task(job)
            if task is None or word in task:
                return
            time.sleep(0.001)
        raise AssertionError(f"job {job} never came to {word}")

    def task(self, job: int) -> str | None:
        """Return the task that the journal says may have begun; None at the end."""
        store = f"file:{self.town.scratch.master.store}?mode=ro"
        with closing(sqlite3.connect(store, uri=True)) as database:
            ask = "SELECT value FROM records WHERE kind = ? AND name = ?"
            (found,) = database.execute(ask, ("job", str(job))).fetchone()
            apart = database.execute(ask, ("tasks", f"{job}.0")).fetchone()
        (op,) = json.loads(found)["ops"]
        if op["status"] in ENDED:
            return None
        tasks = json.loads(apart[0]) if apart else []
        if op.get("undoing") or op["cursor"] >= len(tasks):
            return ""
        return str(tasks[op["cursor"]]["what"])

    def status(self, job: int) -> str:
        """Wait for the end of a job; return its status."""
        seen: list[Any] = [None]
        with LuxiClient(str(self.town.scratch.master.socket)) as luxi:
            while seen[0] not in ENDED:
                change = luxi.wait_for_job_change(job, ["status"], (seen, None), 300)
                assert change != "nochange", f"job {job} stays {seen[0]}"
                seen = change[0]
        return str(seen[0])

    def check(self, before: list[Any], status: str) -> None:
        """Fail unless the disk is as before, or in its new storage."""
        now = self.town.stage.disk("data1")
        assert now["quarantine"] is None
        assert (now["logical_id"] != before) == (status == "success")
        self.seen.append(status)
        assert self.town.stage.status("web1") == "running"
        self.check_lines()
        self.town.stage.check_volumes()

    # -- what is killed -------------------------------------------------------------

    def kill(self, job: int, moment: str, what: str) -> bool:
        """Kill processes in the middle of a task, and start them again.

        Returns
        -------
        Whether the job was still at that task when they stood still; if not, they go
        on.
        """
        pids = [int(file.read_text().split()[0]) for file in self._files(what)]
        self.at(job, moment)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        caught = moment in (self.task(job) or "")
        for pid in pids:
            os.kill(pid, signal.SIGKILL if caught else signal.SIGCONT)
        if caught:
            for pid in pids:
                assert process.wait_until(lambda pid=pid: not process.alive(pid), 60)
            self._start_again(what)
        return caught

    def _files(self, what: str) -> list[Path]:
        """Return the files that name the processes."""
        scratch = self.town.scratch
        if what == "guest":
            (row,) = self.town.ask("gnt-instance list -o uuid web1")
            return [scratch.node("node1").run / "kvm" / row["uuid"] / "pid"]
        found = {"master": scratch.master.pid, "agent": scratch.node("node1").pid}
        return list(found.values()) if what == "both" else [found[what]]

    def _start_again(self, what: str) -> None:
        if what in ("master", "both"):
            self.town.type("moorage master start")
        if what in ("agent", "both"):
            devcluster.start_agent(self.town.scratch, "node1")


@pytest.fixture(scope="module")
def yard(new_town: Callable[[int], Any]) -> Iterator[Yard]:
    with new_town(1) as town:
        yield Yard(town)


def programs(path: Path) -> list[int]:
    """Return the processes of qemu-img that have a file open."""
    found = []
    for one in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if (
                one.readlink() == path
                and "qemu-img" in (one.parents[1] / "comm").read_text()
            ):
                found.append(int(one.parents[1].name))
        except OSError:  # it ended meanwhile
            continue
    return found


MOMENTS = (
    ("create", "master"),
    ("wait until", "master"),
    ("switch", "master"),
    ("record", "master"),
    ("remove", "master"),
    ("wait until", "agent"),
    ("let web1 go on", "agent"),
    ("switch", "both"),
    ("wait until", "guest"),
    ("switch", "guest"),
)
"""The task that is under way, and what dies then."""
ATTEMPTS = 20
"""Some tasks are over in a moment, and not to be caught each time."""


@pytest.mark.parametrize(("moment", "what"), MOMENTS)
def test_something_is_killed(yard: Yard, moment: str, what: str) -> None:
    for _ in range(ATTEMPTS):
        before = yard.town.stage.disk("data1")["logical_id"]
        job = yard.submit()
        caught = yard.kill(job, moment, what)
        status = yard.status(job)
        if caught and what == "guest":
            yard.town.type("gnt-instance startup web1")
            yard.start()
        yard.check(before, status)
        if caught:
            return
    raise AssertionError(f"{what} was never killed at {moment}")


def test_a_job_that_is_cancelled_leaves_the_old_volume(yard: Yard) -> None:
    before = yard.town.stage.disk("data1")["logical_id"]
    job = yard.submit(rate=1)
    yard.at(job, "wait until")
    yard.town.type(f"gnt-job cancel {job}")
    yard.check(before, yard.status(job))
    assert yard.seen[-1] == "canceled"


def test_a_copy_at_rest_is_cancelled_and_its_program_ends(yard: Yard) -> None:
    town = yard.town
    town.type("gnt-disk add -t sharedfile -s 16M big")
    path = Path(town.stage.disk("big")["logical_id"][-1])
    path.write_bytes(os.urandom(16 << 20))
    before = path.read_bytes()
    slow = {"OP_ID": "OP_DISK_CONVERT", "disk": "big", "rate": 1, **STORAGE[1]}
    with LuxiClient(str(town.scratch.master.socket)) as luxi:
        job = int(luxi.submit_job([slow]))
    yard.at(job, "copy")
    assert process.wait_until(lambda: programs(path) != [], 60)
    town.type(f"gnt-job cancel {job}")
    assert yard.status(job) == "canceled"
    assert programs(path) == []
    town.stage.check_volumes()
    with LuxiClient(str(town.scratch.master.socket)) as luxi:
        job = int(luxi.submit_job([slow | {"rate": 0}]))
    assert yard.status(job) == "success"
    town.type("gnt-disk convert -t sharedfile big")
    now = Path(town.stage.disk("big")["logical_id"][-1])
    assert now.read_bytes() == before
    town.type("gnt-disk remove -f big")


def test_a_converted_disk_grows_is_cloned_and_works_at_rest(yard: Yard) -> None:
    town = yard.town
    town.type("gnt-disk clone data1 --name copy -t sharedfile")
    town.type(f"gnt-disk grow data1 {SIZE}M")
    assert town.size("web1", yard.disk) == 2 * SIZE
    town.inside("web1", STOP)
    kept = town.checksum("web1", yard.disk)
    town.type("gnt-instance shutdown web1")
    for provider in {"qsd", "loop"} - {
        town.stage.disk("data1")["params"].get("provider")
    }:
        town.type(f"gnt-instance modify -t ext -e provider={provider} web1")
    town.type("gnt-instance modify -t sharedfile web1")
    town.type("gnt-instance startup web1")
    assert town.checksum("web1", yard.disk) == kept
    yard.start()
    yard.check_lines()
    town.inside("web1", STOP)
    town.type("gnt-disk detach data1")
    town.type("gnt-disk attach copy web1")
    device = town.device("web1", town.uuid("copy"))
    town.inside("web1", f"mount -t ext4 {device} /mnt")
    assert 0 < int(town.inside("web1", LINES)) <= yard.lines
    town.inside("web1", "umount /mnt")
    assert town.healthy()
