# SPDX-License-Identifier: BSD-2-Clause
"""Decisions on answers that are older than what other jobs have done since."""

import asyncio
from typing import Any

import pytest

from moorage.api.luxi_methods import ArchiveJob
from moorage.api.query import Sources
from moorage.errors import CommandFailed
from moorage.ops.cluster.verify_disks import ClusterVerifyDisks
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
    slow = Slow(sim, "node1")
    first = await sim.engine.submit(disk("d0", 600))
    await slow.asked.wait()  # it is about to know of 1000 MiB
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


async def test_room_on_one_node_that_was_taken_meanwhile_is_known(tmp_path):
    """As above, but the room is a node's own."""
    sim = await SimCluster.start(tmp_path, ClusterBuilder(2))
    machine, files = sim.nodes.nodes["node1"].machine, sim.nodes.san.files
    machine.room = 1000
    machine.used = lambda: sum(files[k]["size"] for k in files) // 1024**2
    slow = Slow(sim, "node1")
    local = {"disk_template": "file", "node": "node1"}
    first = await sim.engine.submit([disk("d0", 600)[0] | local])
    await slow.asked.wait()  # it knows of 1000 MiB, and has not heard so yet
    second = await sim.engine.submit([disk("d1", 600)[0] | local])
    assert (await sim.finished(second)).status == "success"
    slow.go.set()
    error = (await sim.finished(first)).ops[0].error
    assert error
    assert "asked 600 MiB" in error["message"]
    await sim.stop()


async def test_what_an_earlier_operation_has_taken_is_not_counted_twice(tmp_path):
    """Its job goes on; the answers of the nodes show what it has made."""
    sim = await SimCluster.start(tmp_path, ClusterBuilder(2))
    files, gate = sim.nodes.san.files, asyncio.Event()
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
        node.machine.used = lambda: sum(files[k]["size"] for k in files) // 1024**2
    reached = asyncio.Event()

    async def wait(name):
        if name.startswith("before ") and "d1" in name:
            reached.set()
            await gate.wait()

    sim.extra_point = wait
    both = await sim.engine.submit([*disk("d0", 600), *disk("d1", 8)])
    await reached.wait()
    other = await sim.engine.submit(disk("d2", 300))
    assert (await sim.finished(other)).status == "success"
    gate.set()
    assert (await sim.finished(both)).status == "success"
    await sim.stop()


async def test_what_ended_before_all_were_asked_anew_is_not_counted_twice(tmp_path):
    """A claim was known when the job began; the last answers show what came of it."""
    sim = await SimCluster.start(tmp_path, ClusterBuilder(2))
    files, go = sim.nodes.san.files, asyncio.Event()
    for node in sim.nodes.nodes.values():
        node.machine.room = 0 if node.name == "node2" else 1300
    machine = sim.nodes.nodes["node1"].machine
    machine.used = lambda: sum(files[k]["size"] for k in files) // 1024**2
    fields = {"disk_template": "file", "ignore_ipolicy": True, "ignore_capacity": True}
    add = {"OP_ID": "OP_INSTANCE_CREATE", "disks": [{"size": 300}], **fields}
    await sim.at_once(add | {"instance_name": "a"})
    begun, asked = asyncio.Event(), asyncio.Event()

    async def wait(_name):
        begun.set()
        await go.wait()

    sim.extra_point = wait
    local = {"disk_template": "file", "node": "node1"}
    first = await sim.engine.submit([disk("d0", 500)[0] | local])
    await begun.wait()
    ask = sim.nodes.ask

    async def slowly(node, calls, term):
        if not asked.is_set():
            asked.set()
            await sim.finished(first)
        return await ask(node, calls, term)

    sim.nodes.ask = slowly
    second = await sim.engine.submit([add | {"instance_name": "b"}])
    await asked.wait()
    go.set()
    assert (await sim.finished(first)).status == "success"
    assert (await sim.finished(second)).ops[0].error is None
    await sim.stop()


async def test_a_choice_that_proved_wrong_took_nothing_from_who_asks_still(tmp_path):
    sim = await SimCluster.start(tmp_path, ClusterBuilder(2))
    machines = [node.machine for node in sim.nodes.nodes.values()]
    for machine in machines:
        machine.room = 1000
    fields = {"disk_template": "file", "ignore_ipolicy": True, "ignore_capacity": True}
    add = {"OP_ID": "OP_INSTANCE_CREATE", **fields}
    await sim.at_once(add | {"instance_name": "a", "disks": [{"size": 1}]})
    for machine in machines:
        machine.used = lambda: 500
    ask, waiting, go = sim.nodes.ask, set(), asyncio.Event()

    async def slowly(node, calls, term):
        waiting.add(node.name)
        await go.wait()
        return await ask(node, calls, term)

    sim.nodes.ask = slowly
    local = {"disk_template": "file", "size": 400}
    jobs = [
        await sim.engine.submit([disk(f"d-{node}", 400)[0] | local | {"node": node}])
        for node in sim.nodes.nodes
    ]
    for _ in range(200):
        await asyncio.sleep(0)
    assert waiting == set(sim.nodes.nodes)
    sim.nodes.ask = ask
    wide = add | {"instance_name": "b", "disks": [{"size": 800}]}
    assert len(await sim.at_once(wide)) == 1
    go.set()
    ended = [await sim.finished(one) for one in jobs]
    assert [one.status for one in ended] == ["success", "success"]
    await sim.stop()


@pytest.mark.parametrize(("nodes", "apart"), [(3, False), (101, True)])
async def test_what_many_nodes_said_is_looked_at_apart(
    tmp_path, monkeypatch, nodes, apart
):
    """From the first look to the last, and freed there: nobody waits meanwhile."""
    sim, looks = SimCluster(tmp_path), list[str]()
    under_way, answers = list[None](), list[Any]()

    async def aside(look):
        under_way.append(None)
        try:
            return look()
        finally:
            under_way.clear()

    def noted(name, real):
        def look(*given):
            looks.extend([name] if under_way else [])
            found, answers[:] = real(*given), [given[1].answers]
            assert len(answers[0]) == nodes
            return found

        return look

    for name in ("check", "result", "jobs"):
        real = getattr(ClusterVerifyDisks, name)
        monkeypatch.setattr(ClusterVerifyDisks, name, noted(name, real))
    sim.aside = aside
    await sim.make(ClusterBuilder(nodes))
    told = await sim.run("OP_CLUSTER_VERIFY_DISKS")
    assert told["silent"] == {}
    assert looks == (["check", "result", "jobs"] if apart else [])
    assert answers == ([{}] if apart else [answers[0]])
    await sim.stop()


async def test_a_job_that_is_put_away_at_its_end_does_not_come_back(tmp_path):
    """It has succeeded for all to see, and what nodes said is being freed."""
    sim, over, go = SimCluster(tmp_path), asyncio.Event(), asyncio.Event()

    async def aside(look):
        if any(job.finished for job in sim.engine.jobs.values()):
            over.set()
            await go.wait()
        return look()

    async def some_turns():
        for _ in range(100):
            await asyncio.sleep(0)

    sim.aside = aside
    await sim.make(ClusterBuilder(2))
    number = await sim.engine.submit([{"OP_ID": "OP_CLUSTER_VERIFY"}])
    await over.wait()
    assert sim.engine.job(number).finished
    at = Sources(sim.config_store, sim.nodes, sim.engine)
    answer = asyncio.create_task(ArchiveJob(number).answer(at))
    await some_turns()
    go.set()
    assert await answer
    await some_turns()
    assert sim.engine.jobs == {}
    assert await sim.store.read("job", "") == {}
    await sim.stop()
