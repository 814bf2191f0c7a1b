# SPDX-License-Identifier: BSD-2-Clause
"""The next master goes on with a job: back, or forward, and says why."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.query import Sources, query
from moorage.jobs import Job, Run
from moorage.model import Change, Disk, successor
from moorage.node.extensions.orders import Orders
from moorage.protocol import Said
from moorage.storage import Command
from moorage.testing.cluster import Crash, SimCluster

START = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web"}
ATTACH = {"OP_ID": "OP_DISK_ATTACH", "disk": "a", "instance_name": "web"}
STOPPED = "the master was stopped in the middle; what was begun is undone"


async def free(_name: str) -> None:
    """Pass a point."""


def dying(cluster: SimCluster, when: str, *, canceled: bool = False) -> None:
    """Let the master die at the points whose name begins so; a cancel is stored."""

    async def die(name: str) -> None:
        if name.startswith(when):
            for number in list(cluster.engine.queue.working) if canceled else ():
                await cluster.engine.cancel(number)
            cluster.die()
            raise Crash(name)

    cluster.extra_point = die


async def dead(cluster: SimCluster, number: int) -> None:
    """Wait until the master has died in the middle of a job."""
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    cluster.extra_point = free


async def attached(cluster: SimCluster, number: int) -> Job:
    """Return the job of an attach when it has ended: all is done, or nothing."""
    job = await cluster.finished(number)
    done = job.status == "success"
    disks = ("a",) if done else ()
    assert cluster.config.instance("web").disks == disks
    assert ("vol-a" in str(cluster.nodes.san.attached)) is done
    assert not cluster.config.disk("a").quarantine
    return job


def reason(job: Job) -> Any:
    return job.ops[0].error["message"] if job.ops[0].error else None


@pytest.fixture
async def running(cluster: SimCluster) -> SimCluster:
    """Return the cluster with a guest that runs."""
    job = await cluster.finished(await cluster.engine.submit([START]))
    assert job.status == "success"
    return cluster


@pytest.mark.parametrize("canceled", [False, True])
async def test_the_reason_is_the_crash_or_the_cancel_before_it(
    running: SimCluster, canceled: bool
) -> None:
    dying(running, "during attach disk a", canceled=canceled)
    number = await running.engine.submit([ATTACH])
    await dead(running, number)
    await running.boot()
    job = await attached(running, number)
    assert job.status == ("canceled" if canceled else "error")
    assert reason(job) == ("the job was canceled" if canceled else STOPPED)


async def test_what_was_done_when_the_master_died_is_a_success(
    running: SimCluster,
) -> None:
    dying(running, "after plug disk a")
    number = await running.engine.submit([ATTACH])
    await dead(running, number)
    await running.boot()
    assert (await attached(running, number)).status == "success"


@pytest.mark.parametrize("when", ["attach disk a", "give disk a"])
async def test_who_dies_while_it_is_undone_changes_no_reason(
    running: SimCluster, when: str
) -> None:
    machine = running.nodes.nodes["node1"].machine
    machine.refuse = lambda _, command: command.argv[0].endswith("/attach")
    dying(running, f"before undoing {when}")
    number = await running.engine.submit([ATTACH])
    await dead(running, number)
    machine.refuse = lambda _, __: False
    await running.boot()
    job = await attached(running, number)
    assert job.status == "error"
    assert "attach" in reason(job)
    assert reason(job) != STOPPED


@pytest.mark.parametrize("again", ["", "during attach disk a", "before plug disk a"])
async def test_a_crash_after_a_planned_stop_is_a_crash(
    running: SimCluster, again: str
) -> None:
    """At the stop the job stood between two tasks; at the crash it did not."""

    async def park(name: str) -> None:
        running.engine.parking = name.startswith("after give disk a")

    running.extra_point = park
    number = await running.engine.submit([ATTACH])
    await asyncio.wait([running.engine._running[number]])
    await running.crash()
    running.extra_point = free
    if again:
        dying(running, again)
        await running.boot()
        await dead(running, number)
    await running.boot()
    job = await attached(running, number)
    assert reason(job) == (STOPPED if again else None)


async def test_a_disk_that_others_changed_since_is_not_removed(
    cluster: SimCluster,
) -> None:
    """The last commit was about another disk: what it says of this one still holds."""
    for disk in ("a", "b"):
        await cluster.run("OP_DISK_ATTACH", disk=disk, instance_name="web")
    dying(cluster, "before remove disk b")
    number = await cluster.submit("OP_INSTANCE_REMOVE", instance_name="web")
    await dead(cluster, number)
    theirs = successor(cluster.config.disk("b"), 1.0, name="theirs")
    await cluster.config_store.commit(Change((theirs,)))
    await cluster.boot()
    job = await cluster.finished(number)
    assert str(reason(job)).startswith("theirs was changed by others since")
    assert cluster.config.disk("b") == theirs
    assert list(cluster.nodes.san.volumes) == ["vol-b"]


async def test_what_others_changed_before_the_first_commit_is_left_alone(
    cluster: SimCluster,
) -> None:
    dying(cluster, "during attach disk a")
    number = await cluster.submit("OP_DISK_GROW", disk="a", amount=8)
    await dead(cluster, number)
    theirs = successor(cluster.config.disk("a"), 1.0, name="theirs")
    await cluster.config_store.commit(Change((theirs,)))
    asked = len(cluster.nodes.calls)
    await cluster.boot()
    job = await cluster.finished(number)
    assert str(reason(job)).startswith("theirs was changed by others since")
    assert len(cluster.nodes.calls) == asked


@pytest.mark.parametrize("form", ["name", "position"])
async def test_what_an_earlier_task_told_is_found_again(
    running: SimCluster, form: str
) -> None:
    """By the task's name; by its position in the journal of an earlier version."""
    move = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web"}
    dying(running, "before transfer web")
    number = await running.engine.submit([move])
    await dead(running, number)
    job = running.recorded(number)
    tasks = [task for task in job.ops[0].tasks if isinstance(task, Run)]
    (sender,) = (task for task in tasks if task.use)
    (prepared,) = (task for task in tasks if task.name)
    assert sender.use == {"door": prepared.name}
    if form == "position":
        job.ops[0].tasks[job.ops[0].tasks.index(sender)] = replace(
            sender, use={"door": job.ops[0].tasks.index(prepared)}
        )
        running.record(job)
    await running.boot()
    assert (await running.finished(number)).status == "success"
    assert running.config.instance("web").primary_node != "node1"


@pytest.mark.parametrize("point", range(6))
async def test_a_doubt_about_a_disk_outlives_the_master_that_had_it(
    cluster: SimCluster, point: int
) -> None:
    """Its volume could not be taken back: whoever goes on keeps the disk in sight."""
    passed = []

    def refuse(_node: str, command: Command) -> bool:
        return command.argv[0].endswith(("/attach", "/remove"))

    async def die(name: str) -> None:
        if " undoing " in name:
            passed.append(name)
            if len(passed) == point + 1:
                cluster.die()
                raise Crash(name)

    cluster.nodes.nodes["node1"].machine.refuse = refuse
    cluster.extra_point = die
    add = {"OP_ID": "OP_DISK_ADD", "name": "new", "disk_template": "ext"}
    number = await cluster.engine.submit([add | {"provider": "san", "size": 8}])
    await dead(cluster, number)
    await cluster.boot()
    assert (await cluster.finished(number)).status == "error"
    (left,) = cluster.config.called(Disk, "new")
    assert "undoing 'create disk new on node1'" in str(left.quarantine)
    assert left.logical_id[1] in cluster.nodes.san.volumes


def held_up(cluster: SimCluster, number: int) -> None:
    """Let others write the job, and the master die when the last of them has.

    Meanwhile the job waits for its turn with what it has just come to know.
    """
    written = []

    async def settled(_version: int) -> Sequence[str]:
        written.append(1)
        if len(written) == 1:
            await asyncio.sleep(0.05)
        if len(written) == 2:
            cluster.die()
        return ()

    cluster.config_store.settled = settled
    asked = [cluster.engine.change_priority(number, one) for one in (1, 2)]
    cluster.others = [asyncio.create_task(one) for one in asked]  # type: ignore[attr-defined]


async def test_no_doubt_is_lost_while_others_write_the_job(cluster: SimCluster) -> None:
    def refuse(_node: str, command: Command) -> bool:
        return command.argv[0].endswith(("/attach", "/remove"))

    async def hold_up(name: str) -> None:
        if name == "after undoing verify the parameters of disk new on node1":
            held_up(cluster, number)

    cluster.nodes.nodes["node1"].machine.refuse = refuse
    cluster.extra_point = hold_up
    add = {"OP_ID": "OP_DISK_ADD", "name": "new", "disk_template": "ext"}
    number = await cluster.engine.submit([add | {"provider": "san", "size": 8}])
    await dead(cluster, number)
    await cluster.boot()
    assert (await cluster.finished(number)).status == "error"
    (left,) = cluster.config.called(Disk, "new")
    assert "undoing 'create disk new on node1'" in str(left.quarantine)


async def test_nor_behind_the_point_of_no_return(cluster: SimCluster) -> None:
    for disk in ("a", "b"):
        await cluster.run("OP_DISK_ATTACH", disk=disk, instance_name="web")

    def refuse(_node: str, command: Command) -> bool:
        is_it = (
            command.argv[0].endswith("/remove") and command.env["VOL_NAME"] == "vol-a"
        )
        if is_it and not hasattr(cluster, "others"):
            held_up(cluster, number)
        return is_it

    cluster.nodes.nodes["node1"].machine.refuse = refuse
    remove = {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web"}
    number = await cluster.engine.submit([remove])
    await dead(cluster, number)
    await cluster.boot()
    assert (await cluster.finished(number)).status == "error"
    assert "remove disk a on node1" in str(cluster.config.disk("a").quarantine)


NODES = ["node1", "node2", "node3"]
COMMAND = {"OP_ID": "OP_CLUSTER_COMMAND", "nodes": NODES, "command": "date"}


class Allowed(Orders):
    """A node whose administrator allows commands; it starts no process."""

    async def run(self, command: str) -> Said:
        return Said(output=command)


@pytest.fixture
def obeying(cluster: SimCluster) -> SimCluster:
    """Return the cluster; its nodes run commands."""
    for node in cluster.nodes.nodes.values():
        node.machine.orders = Allowed(Path("/nowhere"))
    return cluster


async def steps(cluster: SimCluster, number: int) -> list[str]:
    """Return what `gnt-job info` says of each step."""
    sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    answer = await query("job", ["tasks"], ["=", "id", number], sources)
    (((_, ((*told,),)),),) = answer["data"]
    return [step["state"] for step in told]


@pytest.mark.parametrize("canceled", [False, True])
async def test_commands_that_ran_are_told_of_and_never_called_undone(
    obeying: SimCluster, canceled: bool
) -> None:
    when = "during run a command on node2"
    dying(obeying, when, canceled=canceled)
    number = await obeying.engine.submit([COMMAND])
    await dead(obeying, number)
    await obeying.boot()
    job = await obeying.finished(number)
    cause = "the job was canceled" if canceled else STOPPED.partition(";")[0]
    assert reason(job) == (
        f"{cause}. This was done, and stays: run a command on node1. "
        "Nobody knows whether this was done: run a command on node2"
    )
    assert await steps(obeying, number) == ["done", "not known", "waiting"]
