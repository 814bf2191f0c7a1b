# SPDX-License-Identifier: BSD-2-Clause
"""Decisions on answers that are older than what other jobs have done since."""

import asyncio

from moorage.errors import CommandFailed
from moorage.testing.cluster import ClusterBuilder, SimCluster


class Slow:
    """Holds back what one node says of its room, once."""

    def __init__(self, sim, node):
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self._node, self._call = node, sim.nodes.call
        sim.nodes.call = self._slowly
        self._held = False

    async def _slowly(self, node, call, *rest):
        answer = await self._call(node, call, *rest)
        if call.verb == "facts" and node.name == self._node and not self._held:
            self._held = True
            self.asked.set()
            await self.go.wait()
        return answer


def disk(name, size):
    fields = {"name": name, "disk_template": "sharedfile", "size": size}
    return [{"OP_ID": "OP_DISK_ADD", **fields}]


async def test_a_job_that_began_and_ended_meanwhile_has_taken_its_room(tmp_path):
    sim = await SimCluster.start(tmp_path, ClusterBuilder(2))
    files = sim.nodes.san.files
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
        node.machine.used = lambda: sum(files[k]["size"] for k in files) // 1024**2
    slow = Slow(sim, "node2")
    first = await sim.engine.submit(disk("d0", 600))
    await slow.asked.wait()  # it knows of 1000 MiB, and waits for the other node
    second = await sim.engine.submit(disk("d1", 600))
    await sim.finished(second)
    slow.go.set()
    await sim.finished(first)
    states = [sim.engine.job(one).ops[0].status for one in (first, second)]
    assert sorted(states) == ["error", "success"]
    await sim.stop()


async def test_a_move_that_was_undone_meanwhile_frees_nothing(tmp_path):
    """Its instance is where the configuration says, and has its memory there."""
    sim = await SimCluster.start(tmp_path, ClusterBuilder(3))
    fields = {"disk_template": "diskless", "ignore_ipolicy": True, "pnode": "node1"}
    fields |= {"beparams": {"memory": 40_000}}
    await sim.run("OP_INSTANCE_CREATE", instance_name="w0", **fields)
    starts, fails = asyncio.Event(), asyncio.Event()

    async def fail(_spec):
        starts.set()
        await fails.wait()
        raise CommandFailed("it was told to")

    sim.nodes.nodes["node3"].hypervisor.start = fail
    move = {"OP_ID": "OP_INSTANCE_FAILOVER", "instance_name": "w0"}
    moving = await sim.engine.submit([move | {"target_node": "node3"}])
    await starts.wait()
    slow = Slow(sim, "node1")
    add = {"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "w1", **fields}
    adding = await sim.engine.submit([add])
    await slow.asked.wait()
    fails.set()
    await sim.finished(moving)
    assert sim.config.instance("w0").primary_node == "node1"
    slow.go.set()
    await sim.finished(adding)
    assert "memory (asked 40000" in str(sim.engine.job(adding).ops[0].error)
    await sim.stop()
