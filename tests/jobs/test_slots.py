# SPDX-License-Identifier: BSD-2-Clause
"""Slots, and that nobody starves: who waits is in nobody's way."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moorage.jobs import Job
from moorage.jobs.slots import Slots
from moorage.testing.cluster import ClusterBuilder, SimCluster

DISKS = 40


@pytest.fixture
async def wide(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return a cluster of many disks, of which each can be worked on by itself."""
    builder = ClusterBuilder().instance("web").instance("far", "node2")
    for number in range(DISKS):
        builder.disk(f"d{number}")
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    cluster.held = asyncio.Event()
    for number in range(DISKS):
        volume = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes[f"vol-d{number}"] = volume
    yield cluster
    cluster.held.set()
    await cluster.stop()


def grow(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{"OP_ID": "OP_DISK_GROW", "disk": f"d{number}", "amount": 8, **more}]


async def until(claim: Any) -> None:
    """Let the others run until a claim is true."""
    for _ in range(2000):
        if claim():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def busy(cluster: SimCluster, count: int = 20) -> list[int]:
    """Fill slots with jobs whose calls do not come back."""
    gate, waiting = asyncio.Event(), []

    async def wait(name: str) -> None:
        if name.startswith("before ") and not gate.is_set():
            waiting.append(name)
            await gate.wait()

    cluster.extra_point = wait
    jobs = [await cluster.engine.submit(grow(number)) for number in range(count)]
    await until(lambda: len(waiting) == count)
    cluster.nodes.hold = asyncio.Event()
    gate.set()
    await until(lambda: len(cluster.nodes.under_way) == count)
    await let_others_through(cluster)
    return jobs


async def let_others_through(cluster: SimCluster) -> None:
    await asyncio.sleep(0)  # what is under way is held from its first turn on
    await asyncio.sleep(0)
    cluster.held, cluster.nodes.hold = cluster.nodes.hold, None


def let_go(cluster: SimCluster) -> None:
    cluster.held.set()


def status(cluster: SimCluster, number: int) -> str:
    return cluster.engine.job(number).status


# -- the slots themselves -----------------------------------------------------------


async def test_the_most_urgent_gets_the_next_slot() -> None:
    slots, order = Slots(1), []
    first = Job(id=0, ops=[])

    async def one(job: Job) -> None:
        await slots.take(job)
        order.append(job.id)
        slots.release(job)

    await slots.take(first)
    jobs = [Job(id=n, ops=[], priority=p) for n, p in ((1, 10), (2, 0), (3, -5))]
    waits = [asyncio.create_task(one(job)) for job in jobs]
    await asyncio.sleep(0)
    jobs[0].priority = -20  # it changes while it waits
    slots.release(first)
    await asyncio.gather(*waits)
    assert order == [1, 3, 2]
    assert slots.holders == set()


async def test_who_gives_up_waiting_leaves_no_trace() -> None:
    slots, first, second = Slots(1), Job(id=1, ops=[]), Job(id=2, ops=[])
    await slots.take(first)
    waits = asyncio.create_task(slots.take(second))
    await asyncio.sleep(0)
    waits.cancel()
    await asyncio.wait([waits])
    slots.release(first)
    assert slots.holders == set()
    assert not slots.release(second)


# -- in the engine ------------------------------------------------------------------


async def test_no_more_than_twenty_work_at_once(wide: SimCluster) -> None:
    await busy(wide)
    late = await wide.engine.submit(grow(30))
    await until(lambda: wide.engine.locks.rows()[-1] and status(wide, late) != "queued")
    assert status(wide, late) == "waiting"
    assert len(wide.nodes.under_way) == 20
    wide.engine.queue._patience = 0.0
    later = await wide.engine.submit(grow(31))
    (op,) = wide.engine.job(later).ops
    await until(lambda: "Waiting for a slot: 20 jobs may" in str(op.log))
    let_go(wide)
    assert (await wide.finished(late)).status == "success"


async def test_the_urgent_job_gets_the_first_slot(wide: SimCluster) -> None:
    await busy(wide)
    slow = await wide.engine.submit(grow(30, priority=10))
    urgent = await wide.engine.submit(grow(31, priority=-10))
    await until(lambda: len(wide.engine.slots._waiters) == 2)
    ended: list[int] = []
    for number in (slow, urgent):
        task = wide.engine._running[number]
        task.add_done_callback(lambda _, number=number: ended.append(number))
    let_go(wide)
    await wide.finished(slow)
    await wide.finished(urgent)
    await asyncio.sleep(0)
    assert ended == [urgent, slow]


async def test_who_waits_for_a_lock_has_no_slot(wide: SimCluster) -> None:
    """Twenty-five jobs want one disk; what wants another one is not held up."""
    (first,) = await busy(wide, 1)
    queue = [await wide.engine.submit(grow(0)) for _ in range(25)]
    other = await wide.engine.submit(grow(1))
    assert (await wide.finished(other)).status == "success"
    assert status(wide, first) == "running"
    assert {status(wide, number) for number in queue} == {"waiting"}
    let_go(wide)
    assert (await wide.finished(queue[-1])).status == "success"


async def test_who_waits_for_a_node_has_no_slot(wide: SimCluster) -> None:
    """A node dies under more jobs than there are slots; all others go on."""
    jobs = await busy(wide, 20)
    for name in ("node1", "node2", "node3"):
        wide.nodes.nodes[name].lose_power()
    let_go(wide)
    await until(lambda: len(wide.engine._asker.stuck) >= 18)
    assert len(wide.engine.slots.holders) <= 2
    for name in ("node1", "node2", "node3"):
        wide.nodes.nodes[name].boot()
    for number in jobs:
        assert (await wide.finished(number)).finished


@pytest.mark.parametrize("refused", [False, True])
async def test_who_was_answered_at_last_waits_for_a_slot_again(
    wide: SimCluster, refused: bool
) -> None:
    wide.engine.slots.resize(1)
    node, asker, gate = wide.nodes.nodes["node1"], wide.engine._asker, asyncio.Event()
    held = []

    async def look(name: str) -> None:
        held.append((name, set(wide.engine.slots.holders)))
        if name == "before remove disk d0 on node1":
            node.powered = False
        if name.startswith("before ") and "disk d1" in name:
            await gate.wait()

    wide.extra_point = look
    first = await wide.engine.submit([{"OP_ID": "OP_DISK_REMOVE", "disk": "d0"}])
    await until(lambda: first in asker.stuck)
    second = await wide.engine.submit(grow(1))
    await until(lambda: wide.engine.slots.holders == {second})
    node.machine.refuse = lambda _, command: refused and "remove" in command.argv[0]
    node.powered = True
    await until(lambda: first not in asker.stuck)
    for _ in range(50):
        await asyncio.sleep(0)
    assert wide.engine.slots.holders == {second}
    assert wide.config.disk("d0").quarantine is None
    gate.set()
    assert (await wide.finished(second)).status == "success"
    assert (await wide.finished(first)).status == ("error" if refused else "success")
    assert all(len(holders) == 1 for _, holders in held)
    assert wide.engine.slots.holders == set()


async def test_saying_that_a_node_is_off_needs_no_slot(wide: SimCluster) -> None:
    jobs = await busy(wide)
    fields = {"node_name": "node3", "offline": True, "force": True}
    await wide.run("OP_NODE_SET_PARAMS", **fields)
    assert wide.config.node("node3").offline
    assert {status(wide, number) for number in jobs} == {"running"}
    let_go(wide)


# -- calls under way ----------------------------------------------------------------


async def test_a_hung_node_that_is_marked_offline_holds_nobody(
    wide: SimCluster,
) -> None:
    """Its agent took the request and says nothing: no reset, no end of file."""
    await wide.run("OP_DISK_ATTACH", disk="d0", instance_name="far")
    wide.extra_point = partial(_hang, wide)
    number = await wide.submit("OP_INSTANCE_STARTUP", instance_name="far")
    await until(lambda: wide.nodes.under_way and status(wide, number) == "running")
    await let_others_through(wide)
    fields = {"node_name": "node2", "offline": True, "force": True}
    await wide.run("OP_NODE_SET_PARAMS", **fields)
    job = await wide.finished(number)
    assert job.status == "error"
    error = job.ops[0].error
    why = "node node2 was not waited for: it was marked offline meanwhile"
    assert error["message"] == why
    assert error["facts"] == {"node": "node2", "sent": True}
    let_go(wide)


async def _hang(cluster: SimCluster, name: str) -> None:
    if name.startswith("before "):
        cluster.nodes.hold = cluster.nodes.hold or asyncio.Event()


async def test_a_call_under_way_is_canceled(wide: SimCluster) -> None:
    (number,) = await busy(wide, 1)
    assert await wide.engine.cancel(number) == (
        True,
        f"Job {number} will be canceled; what it began is undone",
    )
    await until(lambda: wide.engine.queue.working[number].ops[0].undoing)
    let_go(wide)
    job = await wide.finished(number)
    assert job.status == "canceled"
    assert job.ops[0].error["message"] == "the job was canceled"
    assert wide.config.disk("d0").size == 1024


async def test_what_cannot_be_taken_back_is_not_said_to_be(wide: SimCluster) -> None:
    number = await wide.submit("OP_DISK_REMOVE", disk="d0")
    said = []

    async def cancel(name: str) -> None:
        if name.startswith("during remove"):
            said.append(await wide.engine.cancel(number))

    wide.extra_point = cancel
    assert (await wide.finished(number)).status == "success"
    text = f"Job {number} cannot be canceled any more: it goes on to its end"
    assert said == [(False, text)]


async def test_a_cancel_survives_a_crash(wide: SimCluster) -> None:
    (number,) = await busy(wide, 1)
    wide.nodes.nodes["node1"].lose_power()  # so the undo waits
    await wide.engine.cancel(number)
    assert status(wide, number) == "canceling"
    await wide.crash()
    let_go(wide)
    wide.nodes.nodes["node1"].boot()
    await wide.boot()
    assert (await wide.finished(number)).status == "canceled"


# -- what the log says ---------------------------------------------------------------


async def test_long_waits_are_told(wide: SimCluster) -> None:
    wide.engine.queue._patience = 0.0
    (first,) = await busy(wide, 1)
    second = await wide.engine.submit(grow(0))
    third = await wide.engine.submit(grow(1, depends=[[second, []]]))

    def log(number: int) -> str:
        return "\n".join(str(entry[3]) for entry in wide.engine.job(number).ops[0].log)

    await until(lambda: log(first) and log(second) and log(third))
    assert "Still waiting for node node1: " in log(first)
    assert f"Waiting for the lock of disk d0: job {first}" in log(second)
    assert f"Waiting for job {second}" in log(third)
    let_go(wide)
    await wide.finished(third)


async def test_a_line_is_not_repeated_for_ever(wide: SimCluster) -> None:
    (number,) = await busy(wide, 1)
    job = wide.engine.queue.working[number]
    for _ in range(50):
        wide.engine.queue.note(job, job.ops[0], "the same")
    for line in range(2000):
        wide.engine.queue.note(job, job.ops[0], f"line {line}")
    log = wide.engine.job(number).ops[0].log
    assert [entry[3] for entry in log].count("the same") == 3
    assert len(log) == 1000
    assert "left out" in log[-1][3]
    let_go(wide)
