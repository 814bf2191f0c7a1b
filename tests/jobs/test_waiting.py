# SPDX-License-Identifier: BSD-2-Clause
"""What a job waits for is looked at again when it gets it."""

import asyncio

from moorage.testing.cluster import SimCluster

ATTACH = {"OP_ID": "OP_DISK_ATTACH", "disk": "a", "instance_name": "web"}
START = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web"}


async def test_locks_are_chosen_again_when_their_holder_changed_what_they_are(
    cluster: SimCluster,
) -> None:
    """While the start waits for the instance, the instance gets a disk more."""
    gate, held = asyncio.Event(), {}

    async def look(name: str) -> None:
        await gate.wait()
        if name.startswith("before start web"):
            held.update({r["name"]: r["owner"] for r in cluster.engine.locks.rows()})

    cluster.extra_point = look
    first = await cluster.engine.submit([ATTACH])
    for _ in range(60):
        await asyncio.sleep(0)
    second = await cluster.engine.submit([START])
    for _ in range(60):
        await asyncio.sleep(0)
    assert cluster.engine.job(second).status == "waiting"
    gate.set()
    for number in (first, second):
        assert (await cluster.finished(number)).status == "success"
    assert held["disk/a"] == [second]
    assert held["instance/web"] == [second]


async def test_a_node_that_is_marked_offline_is_not_asked(cluster: SimCluster) -> None:
    """It may be off, or cut off: nobody is to wait for it."""
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True, force=True)
    before = len(cluster.nodes.calls)
    move = {"instance_name": "web", "target_node": "node3"}
    await cluster.refused("OP_INSTANCE_MIGRATE", **move)
    await cluster.refused("OP_INSTANCE_FAILOVER", **move)
    await cluster.refused("OP_DISK_ADD", disk_template="file", size=8, node="node3")
    await cluster.run("OP_CLUSTER_VERIFY")
    assert "node3" not in {node for node, _ in cluster.nodes.calls[before:]}
    assert "node1" in {node for node, _ in cluster.nodes.calls[before:]}
