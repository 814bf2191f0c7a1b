# SPDX-License-Identifier: BSD-2-Clause
"""QEMU's jobs on a guest's drives that do not go as they should.

The QEMU here is a small one: a drive, its jobs, its files, what was asked, in order.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import Failed
from moorage.node.hypervisors.base import Target
from moorage.node.hypervisors.kvm import blockdev, dumping, mirror
from moorage.node.hypervisors.kvm.monitor import Monitor, Refusal
from moorage.protocol import Writing, silent

DISK = "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11"
OLD, NEW = blockdev.stacks(DISK)


class Qemu(Monitor):
    """A QEMU with one drive."""

    def __init__(self) -> None:
        self.guest = "web1"
        self.asked: list[str] = []
        self.status = "running"
        self.drive = OLD.upper
        self.jobs: dict[str, dict[str, Any]] = {}
        self.nodes: set[str] = set()
        self.files: dict[int, str] = {}

    @asynccontextmanager
    async def talk(self) -> AsyncIterator[Monitor]:
        yield self

    def _send(self, descriptor: int) -> None:
        os.fstat(descriptor)

    async def ask(self, command: str, **arguments: Any) -> Any:
        if not command.startswith(("query-", "qom-")):
            self.asked.append(command)
        given = {name.replace("_", "-"): one for name, one in arguments.items()}
        return getattr(self, f"on_{command.replace('-', '_')}")(given)

    def on_query_status(self, _given: Any) -> Any:
        return {"status": self.status}

    def on_query_jobs(self, _given: Any) -> Any:
        return [{"id": name, **one} for name, one in self.jobs.items()]

    def on_query_block_jobs(self, _given: Any) -> Any:
        return [
            {"device": name, "io-status": one.get("io-status", "ok")}
            for name, one in self.jobs.items()
        ]

    def on_query_migrate(self, _given: Any) -> Any:
        return {}

    def on_query_fdsets(self, _given: Any) -> Any:
        return [
            {"fdset-id": number, "fds": [{"opaque": text}]}
            for number, text in self.files.items()
        ]

    def on_query_named_block_nodes(self, _given: Any) -> Any:
        image = {"virtual-size": 1 << 20}
        return [{"node-name": name, "image": image} for name in sorted(self.nodes)]

    def on_qom_list(self, _given: Any) -> Any:
        return [{"name": blockdev.device_name(DISK)}]

    def on_qom_get(self, _given: Any) -> Any:
        return self.drive

    def on_stop(self, _given: Any) -> None:
        self.status = "paused"

    def on_cont(self, _given: Any) -> None:
        """Let a guest run: a job that was asked to end does so at its next chance."""
        self.status = "running"
        for job in self.jobs.values():
            if job["status"] == "ready" and job.get("asked"):
                self.drive = NEW.upper

    def on_job_complete(self, given: Any) -> None:
        self.jobs[given["id"]] |= {"asked": True}

    def on_job_cancel(self, given: Any) -> None:
        self.jobs[given["id"]] |= {"status": "concluded", "error": "cancelled"}

    def on_job_dismiss(self, given: Any) -> None:
        if self.jobs[given["id"]]["status"] != "concluded":
            raise Refusal(self.guest, "job-dismiss", "the job has not ended")
        del self.jobs[given["id"]]

    def on_add_fd(self, given: Any) -> Any:
        if given["fdset-id"] in self.files:
            raise AssertionError("two files have one number")
        self.files[given["fdset-id"]] = given["opaque"]
        return {"fd": 7}

    def on_remove_fd(self, given: Any) -> None:
        del self.files[given["fdset-id"]]

    def on_blockdev_add(self, given: Any) -> None:
        if given["node-name"] in self.nodes:
            raise Refusal(self.guest, "blockdev-add", "Duplicate nodes")
        self.nodes.add(given["node-name"])

    def on_blockdev_del(self, given: Any) -> None:
        if any(job["status"] != "concluded" for job in self.jobs.values()):
            raise Refusal(self.guest, "blockdev-del", "Node is in use")
        self.nodes.remove(given["node-name"])

    def on_transaction(self, given: Any) -> None:
        for action in given["actions"]:
            name = action["data"]["job-id"]
            if name in self.jobs:
                raise Refusal(self.guest, "transaction", "Job ID already in use")
            self.jobs[name] = {"status": "concluded", "error": ""}


async def test_a_switch_that_takes_too_long_leaves_the_guest_with_what_it_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job ends before the guest runs: else it would change its drive later."""
    monkeypatch.setattr(mirror, "_STANDSTILL", 0.05)
    qemu = Qemu()
    job = f"mirror-{OLD.upper}"
    qemu.jobs[job] = {"status": "ready", "error": ""}
    with pytest.raises(Failed, match="its volumes were not equal in"):
        await mirror.switch(qemu.talk, DISK)
    assert (qemu.status, qemu.drive) == ("running", OLD.upper)
    assert qemu.asked[-2:] == ["job-cancel", "cont"]
    assert qemu.jobs[job]["status"] == "concluded"
    with pytest.raises(Failed, match="cancelled"):
        await mirror.switch(qemu.talk, DISK)
    assert (qemu.status, qemu.drive) == ("running", OLD.upper)


@pytest.mark.parametrize(
    ("met", "told"),
    [("failed", "the new one cannot be written"), ("nospace", "there is no room")],
)
async def test_a_job_that_met_an_error_is_cancelled_while_the_guest_stands_still(
    met: str, told: str
) -> None:
    """QEMU would die of a write that is on its way just then."""
    qemu = Qemu()
    job = f"mirror-{OLD.upper}"
    qemu.jobs[job] = {"status": "standby", "error": "", "io-status": met}
    with pytest.raises(Failed, match=told):
        await mirror.follow(qemu.talk, DISK, lambda *_: None)
    assert (qemu.status, qemu.asked) == ("running", [])
    await mirror.drop(qemu.talk, DISK)
    assert (qemu.status, qemu.drive) == ("running", OLD.upper)
    assert qemu.asked[:3] == ["stop", "job-cancel", "cont"]
    assert qemu.jobs == {}


@pytest.mark.parametrize("verb", [mirror.switch, mirror.drop])
async def test_a_guest_that_stops_too_late_goes_on(
    monkeypatch: pytest.MonkeyPatch, verb: Callable[..., Awaitable[None]]
) -> None:
    """QEMU stopped it, but so late that nobody heard of it."""
    qemu = Qemu()
    job = f"mirror-{OLD.upper}"
    qemu.jobs[job] = {"status": "ready", "error": ""}
    stop = qemu.on_stop

    def late(given: Any) -> Any:
        stop(given)
        raise Failed("QEMU gave no answer to stop")

    monkeypatch.setattr(qemu, "on_stop", late)
    with pytest.raises(Failed, match="no answer to stop"):
        await verb(qemu.talk, DISK)
    assert (qemu.status, qemu.drive) == ("running", OLD.upper)
    assert qemu.jobs[job]["status"] == "ready"


class _Images:
    """Opens image files as they are."""

    @staticmethod
    def open(path: str, flags: int) -> int:
        return os.open(path, flags)


async def dumped(qemu: Qemu, path: Path) -> None:
    path.touch()
    target = Target(disk=DISK, path=str(path), form="raw")
    images: Any = _Images()
    await dumping.dump(qemu.talk, [target], Writing(), images, silent)


async def test_a_dump_is_made_again_where_an_interrupted_one_goes_on(
    tmp_path: Path,
) -> None:
    """The agent was killed, QEMU copies on: that copy is ended, and its file closed."""
    qemu = Qemu()
    await dumped(qemu, tmp_path / "first")
    assert (qemu.jobs, qemu.nodes, qemu.files) == ({}, set(), {})
    qemu.asked.clear()
    qemu.jobs[f"dump-{DISK}"] = {"status": "running", "error": ""}
    qemu.nodes.add(blockdev.dump_name(DISK))
    qemu.files |= {1: DISK, 2: f"dump-{DISK}"}
    await dumped(qemu, tmp_path / "second")
    before = qemu.asked[: qemu.asked.index("transaction")]
    ended = ["job-cancel", "job-dismiss", "blockdev-del", "remove-fd"]
    assert before == [*ended, "add-fd", "blockdev-add"]
    assert (qemu.jobs, qemu.nodes, qemu.files) == ({}, set(), {1: DISK})
