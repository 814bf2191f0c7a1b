# SPDX-License-Identifier: BSD-2-Clause
"""What is taken back: no more than may have happened, and no less."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import from_json
from moorage.jobs.task import today
from moorage.model import Change, Disk, successor
from moorage.protocol import DetachDisk
from moorage.storage import Command
from moorage.testing.cluster import SimCluster

ADD = {"name": "new", "disk_template": "ext", "provider": "san", "size": 8}
PATIENCE = 2000
"""Turns of others after which a job that waits for a node still waits."""


async def ended(cluster: SimCluster, number: int) -> bool:
    for _ in range(PATIENCE):
        if cluster.engine.job(number).finished:
            return True
        await asyncio.sleep(0)
    return False


@pytest.mark.parametrize("told", [False, True])
async def test_what_never_reached_its_node_is_not_taken_back_there(
    cluster: SimCluster, told: bool
) -> None:
    """The node is down before the request is sent: nobody has to wait for it."""

    async def cut(name: str) -> None:
        if name == "before create disk new on node1":
            cluster.nodes.nodes["node1"].powered = False
            off = successor(cluster.config.node("node1"), 1.0, offline=told)
            await cluster.config_store.commit(Change((off,)))

    cluster.extra_point = cut
    number = await cluster.submit("OP_DISK_ADD", **ADD)
    assert await ended(cluster, number)
    job = cluster.engine.job(number)
    assert job.status == "error"
    assert ("node1 is marked offline" in job.ops[0].error["message"]) is told
    assert not cluster.config.called(Disk, "new")


async def test_what_was_made_on_a_node_that_is_off_then_stays_in_sight(
    cluster: SimCluster,
) -> None:
    """Power takes what was attached; the volume is still there."""

    async def cut(name: str) -> None:
        if name == "after create disk new on node1":
            cluster.nodes.nodes["node1"].lose_power()
            node = cluster.config.node("node1")
            off = successor(node, cluster.clock(), offline=True)
            await cluster.config_store.commit(Change((off,)))

    cluster.extra_point = cut
    number = await cluster.submit("OP_DISK_ADD", **ADD)
    job = await cluster.finished(number)
    assert job.status == "error"
    (left,) = cluster.config.called(Disk, "new")
    assert "undoing 'create disk new on node1'" in str(left.quarantine)
    assert left.logical_id[1] in cluster.nodes.san.volumes
    assert left.mtime == cluster.clock()


async def test_a_commit_that_is_refused_is_not_taken_back(cluster: SimCluster) -> None:
    """Somebody took the name meanwhile: their disk stays, and ours leaves nothing."""
    volumes = set(cluster.nodes.san.volumes)

    async def take(name: str) -> None:
        if name == "before record disk new":
            theirs = replace(cluster.config.disk("a"), uuid="theirs", name="new")
            theirs = replace(theirs, logical_id=("san", "other"), serial_no=1)
            await cluster.config_store.commit(Change((theirs,)))

    cluster.extra_point = take
    job = await cluster.finished(await cluster.submit("OP_DISK_ADD", **ADD))
    assert "the name 'new' is taken" in str(from_json(job.ops[0].error))
    assert [disk.uuid for disk in cluster.config.called(Disk, "new")] == ["theirs"]
    assert set(cluster.nodes.san.volumes) == volumes
    assert job.ops[0].cursor == -1


@pytest.mark.parametrize("failures", [2, 3])
async def test_an_undo_is_tried_three_times(cluster: SimCluster, failures: int) -> None:
    """Storage that says no twice is asked again; then its disk is quarantined."""
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    left = failures

    def refuse(_node: str, command: Command) -> bool:
        nonlocal left
        left -= command.argv[0].endswith("/detach")
        return command.argv[0].endswith("/detach") and left >= 0

    async def cancel(name: str) -> None:
        if name == "after attach disk a on node1":
            cluster.nodes.nodes["node1"].machine.refuse = refuse
            await cluster.engine.cancel(number)

    cluster.extra_point = cancel
    number = await cluster.submit("OP_DISK_ATTACH", disk="a", instance_name="web")
    job = await cluster.finished(number)
    assert job.ops[0].error["message"] == "the job was canceled"
    warning = "Warning: undoing 'attach disk a on node1': "
    told = [str(entry[3]).startswith(warning) for entry in job.ops[0].log]
    assert told.count(True) == failures
    disk = cluster.config.disk("a")
    assert bool(disk.quarantine) is (failures == 3)
    assert cluster.config.instance("web").disks == ()


async def test_what_others_changed_since_is_not_taken_back(cluster: SimCluster) -> None:
    """Somebody gave the disk a name of theirs after the job gave it an owner."""
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")

    async def meddle(name: str) -> None:
        if name == "before attach disk a on node1":
            theirs = successor(cluster.config.disk("a"), 1.0, name="theirs")
            await cluster.config_store.commit(Change((theirs,)))
            await cluster.engine.cancel(number)

    cluster.extra_point = meddle
    number = await cluster.submit("OP_DISK_ATTACH", disk="a", instance_name="web")
    error = from_json((await cluster.finished(number)).ops[0].error)
    assert error.message == (
        "theirs was changed by others since this operation worked on it: what it began "
        "is neither carried on nor undone (DISK_ATTACH(a), step 1 of 3)"
    )
    assert error.hint == "gnt-cluster verify"
    assert cluster.config.disk("theirs").uuid == "a"
    assert cluster.config.instance("web").disks == ("a",)


async def test_a_disk_in_doubt_is_quarantined_though_others_changed_it(
    cluster: SimCluster,
) -> None:
    """The attach could not be taken back, and neither can the commit before it."""
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")

    def refuse(_node: str, command: Command) -> bool:
        return command.argv[0].endswith("/detach")

    async def meddle(name: str) -> None:
        if name == "after attach disk a on node1":
            cluster.nodes.nodes["node1"].machine.refuse = refuse
            await cluster.engine.cancel(number)
        if name == "after undoing attach disk a on node1":
            theirs = successor(cluster.config.disk("a"), 1.0, name="theirs")
            await cluster.config_store.commit(Change((theirs,)))

    cluster.extra_point = meddle
    number = await cluster.submit("OP_DISK_ATTACH", disk="a", instance_name="web")
    error = from_json((await cluster.finished(number)).ops[0].error)
    assert "was changed by others" in error.message
    why = cluster.config.disk("theirs").quarantine
    assert why is not None
    assert "undoing 'attach disk a on node1'" in why


async def test_a_defect_of_ours_is_undone_and_told(
    cluster: SimCluster, caplog: pytest.LogCaptureFixture
) -> None:
    call = cluster.nodes.call

    async def broken(node: Any, asked: Any, *more: Any) -> Any:
        if asked.verb == "disk.attach":
            raise ZeroDivisionError("nobody thought of that")
        return await call(node, asked, *more)

    cluster.nodes.call = broken  # type: ignore[method-assign]
    error = await cluster.refused("OP_DISK_GROW", disk="a", amount=8)
    assert str(error) == "internal error: ZeroDivisionError: nobody thought of that"
    assert cluster.config.disk("a").size == 1024
    (record,) = caplog.records
    assert record.getMessage() == "something broke"
    assert "nobody thought of that" in caplog.text


async def test_a_step_is_taken_back_in_the_epoch_of_its_disk(
    cluster: SimCluster,
) -> None:
    """It was planned before a commit that raised it; one of a later epoch keeps its."""
    disk = cluster.config.disk("a")
    where = {"settings": {}, "disk": disk}
    await cluster.config_store.commit(Change((successor(disk, 1.0, epoch=3),)))
    again = today(DetachDisk(**where), cluster.config)
    assert [one.epoch for one in again.volumes()] == [3]
    later = today(
        DetachDisk(**where | {"disk": replace(disk, epoch=5)}), cluster.config
    )
    assert [one.epoch for one in later.volumes()] == [5]


async def test_a_cancel_just_before_the_point_of_no_return_is_kept(
    cluster: SimCluster,
) -> None:
    """The step under way ends before it hears of it; the next one is final."""
    told = []

    async def cancel(name: str) -> None:
        if name == "during attach disk a on node1":
            told.append(await cluster.engine.cancel(number))

    cluster.extra_point = cancel
    number = await cluster.submit("OP_DISK_GROW", disk="a", amount=8)
    job = await cluster.finished(number)
    text = f"Job {number} will be canceled; what it began is undone"
    assert told == [(True, text)]
    assert job.status == "canceled"
    assert cluster.config.disk("a").size == 1024
    assert cluster.nodes.san.attached == {}
