# SPDX-License-Identifier: BSD-2-Clause
"""Guests of Ganeti's with mirrored disks: what is set up is taken as it is, or not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mirrored import mirrored

from moorage.storage import Command
from moorage.testing.cluster import Crash, SimCluster

TAKE, RESTART = "OP_INSTANCE_ADOPT_GUEST", "OP_INSTANCE_RESTART_GUEST"
LOOK = "OP_CLUSTER_FOREIGN_GUESTS"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await running(tmp_path)
    yield cluster
    await cluster.stop()


async def running(directory: Path) -> SimCluster:
    """Return a cluster whose *web* runs on a mirrored disk, as Ganeti started it."""
    cluster = await mirrored(directory, "root", "written")
    found = cluster.nodes.san.guests[key(cluster)]
    state = found["state"] | {"origin": "foreign", "memory": 0}
    cluster.nodes.san.guests[key(cluster)] = found | {"state": state}
    return cluster


def key(cluster: SimCluster) -> str:
    return f"node2 {cluster.config.instance('web').uuid}"


def origin(cluster: SimCluster) -> str:
    return str(cluster.nodes.san.guests[key(cluster)]["state"].get("origin", ""))


def orders(cluster: SimCluster) -> list[Command]:
    """Return a list that gets each command to DRBD which may change something."""
    seen: list[Command] = []

    def note(_node: str, command: Command) -> bool:
        if command.argv[0].startswith("drbd") and not command.reads:
            seen.append(command)
        return False

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = note
    return seen


def devices(cluster: SimCluster) -> dict[str, Any]:
    return {name: dict(one) for name, one in cluster.nodes.san.drbd.devices.items()}


async def failed(cluster: SimCluster, op_id: str) -> str:
    job = await cluster.finished(await cluster.submit(op_id, instance_name="web"))
    assert job.status == "error"
    return str(job.ops[0].error)


async def test_nothing_of_its_devices_is_changed_when_it_is_taken_over(
    cluster: SimCluster,
) -> None:
    (row,) = (await cluster.run(LOOK))["guests"]
    assert row["status"] == "ready"
    before, changed = devices(cluster), orders(cluster)
    await cluster.run(TAKE, instance_name="web")
    assert origin(cluster) == "adopted"
    assert (devices(cluster), changed) == (before, [])
    cluster.nodes.san.drbd.write("node2", 0, "more")
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    assert not devices(cluster)
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    assert cluster.config.home(cluster.config.instance("web")).name == "node3"


@pytest.mark.parametrize(
    ("at", "change", "lack"),
    [
        ("node2", {"other": "ipv4:192.0.2.7:11000"}, "it seeks its other copy at"),
        ("node2", {"mine": "", "other": ""}, "it does not seek its other copy"),
        ("node2", {"two": True}, "both nodes may write to it"),
        ("node3", {"other": "ipv4:192.0.2.7:11000"}, "it seeks its other copy at"),
        ("node3", None, "it is not set up there"),
        ("node3", {"data": "node3 xenvg/other"}, "minor 0 of node node3 is in use"),
    ],
)
async def test_what_is_set_up_otherwise_than_on_record_is_left_alone(
    cluster: SimCluster, at: str, change: dict[str, Any] | None, lack: str
) -> None:
    records = cluster.nodes.san.drbd.devices
    if change is None:
        records.pop(f"{at} 0")
    else:
        records[f"{at} 0"] = records[f"{at} 0"] | change
    before, changed = devices(cluster), orders(cluster)
    assert lack in await failed(cluster, TAKE)
    assert origin(cluster) == "foreign"
    assert (devices(cluster), changed) == (before, [])


async def test_nobody_touches_its_devices_before(cluster: SimCluster) -> None:
    """Not a person and not the watcher, though its node holds no such disk yet."""
    records = cluster.nodes.san.drbd.devices
    records["node2 0"] = records["node2 0"] | {"other": "ipv4:192.0.2.7:11000"}
    before, changed = devices(cluster), orders(cluster)
    for op_id, more in (
        ("OP_INSTANCE_ACTIVATE_DISKS", {}),
        ("OP_INSTANCE_REPLACE_DISKS", {"mode": "replace_on_secondary"}),
    ):
        error = await cluster.refused(op_id, instance_name="web", **more)
        assert "nobody has taken over: its disks are left alone" in str(error)
    looked = await cluster.run("OP_CLUSTER_VERIFY_DISKS")
    assert looked["names"] == []
    assert (devices(cluster), changed) == (before, [])


async def test_it_is_restarted_with_what_it_wrote(cluster: SimCluster) -> None:
    await cluster.run(RESTART, instance_name="web")
    assert origin(cluster) == ""
    assert not (await cluster.run(LOOK))["guests"]
    held = cluster.nodes.san.logical
    data = {one["data"] for name, one in held.items() if name.endswith("_data")}
    assert data == {"written"}
    assert not cluster.nodes.san.broken


async def test_one_that_does_not_go_is_not_started_a_second_time(
    cluster: SimCluster,
) -> None:
    guests = cluster.nodes.san.guests
    guests[key(cluster)] = guests[key(cluster)] | {"ganetis": {"stays": True}}
    before, changed = dict(guests), orders(cluster)
    assert "is there after 120 s" in await failed(cluster, RESTART)
    assert dict(guests) == before
    assert not changed
    guests[key(cluster)] = guests[key(cluster)] | {"ganetis": {}}
    await cluster.run(RESTART, instance_name="web")
    error = await cluster.refused(RESTART, instance_name="web")
    assert "none that Ganeti started" in str(error)


async def test_one_that_went_meanwhile_is_started(cluster: SimCluster) -> None:
    del cluster.nodes.san.guests[key(cluster)]
    await cluster.run(RESTART, instance_name="web")
    assert origin(cluster) == ""
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    error = await cluster.refused(RESTART, instance_name="web")
    assert "should be down" in str(error)


async def test_a_master_that_dies_anywhere_leaves_it_running_or_to_be_started(
    tmp_path: Path,
) -> None:
    cluster = await running(tmp_path / "whole")
    before = len(cluster.points)
    await cluster.run(RESTART, instance_name="web")
    points = range(before, len(cluster.points))
    assert len(points) > 10
    await cluster.stop()
    for point in points:
        cluster = await running(tmp_path / f"{point}")
        cluster.crash_at = point
        number = await cluster.submit(RESTART, instance_name="web")
        with pytest.raises(Crash):
            await cluster.finished(number)
        await cluster.crash()
        cluster.crash_at = None
        await cluster.boot()
        await cluster.finished(number)
        if not (key(cluster) in cluster.nodes.san.guests and not origin(cluster)):
            await cluster.run(RESTART, instance_name="web")
        assert origin(cluster) == ""
        cluster.nodes.san.drbd.write("node2", 0, "more")
        assert not cluster.nodes.san.broken
        await cluster.stop()


async def test_its_own_memory_is_given_back_before_it_starts(
    cluster: SimCluster,
) -> None:
    """A node that is full with what runs there can restart it all the same."""
    cluster.nodes.nodes["node2"].machine.size = 1
    await cluster.run(RESTART, instance_name="web")
    assert origin(cluster) == ""


async def test_its_mirror_is_tuned_and_a_limit_waits_for_its_next_start(
    cluster: SimCluster,
) -> None:
    await cluster.run(TAKE, instance_name="web")
    said = []
    for name in ("resync-rate", "total_iops_sec"):
        given = {"diskparams": {"drbd": {name: 300}}}
        number = await cluster.submit("OP_CLUSTER_SET_PARAMS", **given)
        (op,) = (await cluster.finished(number)).ops
        assert op.error is None
        said.append([str(entry[3]) for entry in op.log if "Warning" in str(entry[3])])
    assert said[0] == []
    assert "runs as Ganeti started it" in said[1][0]
