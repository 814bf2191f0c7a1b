# SPDX-License-Identifier: BSD-2-Clause
"""What is taken back: no more than may have happened, and no less."""

import asyncio

from msgspec.structs import replace

from moorage.errors import from_json
from moorage.model import Change, Disk, successor
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


async def test_what_never_reached_its_node_is_not_taken_back_there(
    cluster: SimCluster,
) -> None:
    """The node is down before the request is sent: nobody has to wait for it."""

    async def cut(name: str) -> None:
        if name == "before create disk new on node1":
            cluster.nodes.nodes["node1"].powered = False

    cluster.extra_point = cut
    number = await cluster.submit("OP_DISK_ADD", **ADD)
    assert await ended(cluster, number)
    assert cluster.engine.job(number).status == "error"
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
            await cluster.truth.commit(Change((off,)))

    cluster.extra_point = cut
    number = await cluster.submit("OP_DISK_ADD", **ADD)
    job = await cluster.finished(number)
    assert job.status == "error"
    (left,) = cluster.config.called(Disk, "new")
    assert "undoing 'create disk new on node1'" in str(left.quarantine)
    assert left.logical_id[1] in cluster.nodes.san.volumes


async def test_a_commit_that_is_refused_is_not_taken_back(cluster: SimCluster) -> None:
    """Somebody took the name meanwhile: their disk stays, and ours leaves nothing."""
    volumes = set(cluster.nodes.san.volumes)

    async def take(name: str) -> None:
        if name == "before record disk new":
            theirs = replace(cluster.config.disk("a"), uuid="theirs", name="new")
            theirs = replace(theirs, logical_id=("san", "other"), serial_no=1)
            await cluster.truth.commit(Change((theirs,)))

    cluster.extra_point = take
    job = await cluster.finished(await cluster.submit("OP_DISK_ADD", **ADD))
    assert "the name 'new' is taken" in str(from_json(job.ops[0].error))
    assert [disk.uuid for disk in cluster.config.called(Disk, "new")] == ["theirs"]
    assert set(cluster.nodes.san.volumes) == volumes
    assert job.ops[0].cursor == -1
