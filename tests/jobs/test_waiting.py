# SPDX-License-Identifier: BSD-2-Clause
"""What a job waits for is looked at again when it gets it."""

import asyncio
from typing import Any

from moorage.testing.cluster import SimCluster

ATTACH = {"OP_ID": "OP_DISK_ATTACH", "disk": "a", "instance_name": "web"}
START = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web"}
MORE = {"amount": 8}


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


async def test_two_whose_locks_became_more_do_not_wait_for_each_other(
    cluster: SimCluster,
) -> None:
    """The start needs the disk as well now, and who grows the disk its instance."""
    gate = asyncio.Event()

    async def look(_name: str) -> None:
        await gate.wait()

    cluster.extra_point = look
    jobs = [
        await cluster.engine.submit([opcode])
        for opcode in (ATTACH, START, {"OP_ID": "OP_DISK_GROW", "disk": "a"} | MORE)
    ]
    for _ in range(60):
        await asyncio.sleep(0)
    gate.set()
    for number in jobs:
        job = await asyncio.wait_for(cluster.finished(number), 10)
        assert job.status == "success"


async def test_the_log_says_who_has_not_answered_yet(cluster: SimCluster) -> None:
    cluster.engine.queue._patience = 0.05
    gate, ask = asyncio.Event(), cluster.nodes.ask

    async def slowly(node: Any, *more: Any) -> Any:
        if node.name != "node1":
            await gate.wait()
        return await ask(node, *more)

    cluster.nodes.ask = slowly  # type: ignore[method-assign]
    number = await cluster.submit("OP_CLUSTER_VERIFY")
    (op,) = cluster.engine.job(number).ops
    for _ in range(100):
        await asyncio.sleep(0.01)
        if op.log:
            break
    assert [entry[3] for entry in op.log] == ["Waiting for an answer from node2, node3"]
    gate.set()
    assert (await cluster.finished(number)).status == "success"


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
