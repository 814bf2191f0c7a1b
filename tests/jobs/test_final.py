# SPDX-License-Identifier: BSD-2-Clause
"""The point of no return: it is asked for until it is answered, and who can tell."""

import asyncio
from typing import Any

import pytest

from moorage.errors import CommandFailed
from moorage.testing.cluster import SimCluster

PATIENCE = 2000
"""Turns of others after which a job that waits for a node still waits."""


async def test_a_final_step_waits_for_its_node(cluster: SimCluster) -> None:
    node = cluster.nodes.nodes["node1"]

    async def cut(name: str) -> None:
        if name == "before remove disk a on node1":
            node.powered = False

    cluster.extra_point = cut
    number = await cluster.submit("OP_DISK_REMOVE", disk="a")
    for _ in range(PATIENCE):
        await asyncio.sleep(0)
    assert cluster.engine.job(number).status == "running"
    assert "vol-a" in cluster.nodes.san.volumes
    node.powered = True
    assert (await cluster.finished(number)).status == "success"
    assert "vol-a" not in cluster.nodes.san.volumes


@pytest.mark.parametrize("arrived", [True, False])
async def test_the_target_can_tell_what_the_source_cannot(
    cluster: SimCluster, arrived: bool
) -> None:
    """The source says that the transfer failed: it has, or only its word is lost."""
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    source = cluster.nodes.nodes["node1"].hypervisor
    migrate = source.migrate

    async def broken(*way: Any, live: bool) -> Any:
        if arrived:
            await migrate(*way, live=live)
        raise CommandFailed("the line broke")

    source.migrate = broken  # type: ignore[method-assign]
    move = {"instance_name": "web", "target_node": "node2"}
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_MIGRATE", **move))
    home = "node2" if arrived else "node1"
    assert job.status == ("success" if arrived else "error"), job.ops[0].error
    assert cluster.config.instance("web").primary_node == home
    assert list(cluster.nodes.san.guests) == [f"{home} web"]
    assert cluster.nodes.san.broken == []
