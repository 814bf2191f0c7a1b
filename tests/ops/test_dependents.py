# SPDX-License-Identifier: BSD-2-Clause
"""A volume that snapshots need is destroyed by nobody who could have asked."""

from pathlib import Path

import pytest

from moorage.model import Disk
from moorage.testing.cluster import SimCluster

MADE = {"pnode": "node1", "disk_template": "plain", "start": False}


@pytest.fixture
async def cluster(tmp_path: Path) -> SimCluster:
    made = await SimCluster.start(tmp_path)
    disks = [{"size": 64, "name": "root"}]
    await made.run("OP_INSTANCE_CREATE", instance_name="web", disks=disks, **MADE)
    await made.run("OP_DISK_SNAPSHOT", disk="root", new_name="before")
    return made


@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_INSTANCE_REMOVE", {"instance_name": "web"}),
        ("OP_DISK_CONVERT", {"disk": "root", "disk_template": "sharedfile"}),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"instance_name": "web", "disks": [["remove", "root", {}]]},
        ),
    ],
)
async def test_what_snapshots_need_stays(
    cluster: SimCluster, op_id: str, fields: dict[str, object]
) -> None:
    before = cluster.config
    refusal = await cluster.refused(op_id, **fields)
    assert refusal.message == (
        "disk root has snapshots, which cannot be read without it: before"
    )
    assert cluster.config is before
    await cluster.run("OP_DISK_REMOVE", disk="before")
    await cluster.run(op_id, **fields)
    assert not any(one.quarantine for one in cluster.config.all(Disk))
    assert not cluster.nodes.san.logical


@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_INSTANCE_MOVE", {"target_node": "node2"}),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"disk_template": "drbd", "remote_node": "node2"},
        ),
    ],
)
async def test_what_snapshots_need_does_not_leave_its_node(
    cluster: SimCluster, op_id: str, fields: dict[str, object]
) -> None:
    """A second copy is refused, too: the first one would go in a journey's end."""
    before = cluster.config
    refusal = await cluster.refused(op_id, instance_name="web", **fields)
    assert refusal.message == (
        "disk root has snapshots, which cannot be read without it: before"
    )
    assert cluster.config is before
    await cluster.run("OP_DISK_REMOVE", disk="before")
    await cluster.run(op_id, instance_name="web", **fields)
    for number in list(cluster.engine.jobs):
        assert (await cluster.finished(number)).finished
    left = {one.partition(" ")[0] for one in cluster.nodes.san.logical}
    assert left == {"node2"} | ({"node1"} if "remote_node" in fields else set())


async def test_a_disk_of_nobodys_that_snapshots_need_stays(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_DETACH", disk="root")
    refusal = await cluster.refused("OP_DISK_REMOVE", disk="root")
    assert refusal.hint == "first: gnt-disk remove before"
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    await cluster.run("OP_DISK_CLONE", disk="root", new_name="whole")


async def test_disks_that_stay_may_have_snapshots(cluster: SimCluster) -> None:
    fields = {"instance_name": "web", "keep_disks": True}
    await cluster.run("OP_INSTANCE_REMOVE", **fields)
    assert {one.name for one in cluster.config.all(Disk)} == {"root", "before"}
