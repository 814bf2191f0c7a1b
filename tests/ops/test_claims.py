# SPDX-License-Identifier: BSD-2-Clause
"""Several requests at once choose as if they had come one after the other."""

import asyncio
from collections import Counter

import pytest

from moorage.errors import NoCapacity, from_json
from moorage.model import Instance
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster
from moorage.testing.machine import PROVIDERS


@pytest.fixture
async def sim(tmp_path):
    cluster = await SimCluster.start(tmp_path)
    yield cluster
    await cluster.stop()


def adding(name, memory, **more):
    return {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": name,
        "disk_template": "ext",
        "disks": [{"size": 64, "provider": "san"}],
        "beparams": {"memory": memory},
    } | more


def moving(op_id, name, **more):
    return {"OP_ID": op_id, "instance_name": name} | more


async def warned(sim):
    """Return what verify says of the loss of a node."""
    found = await sim.run("OP_CLUSTER_VERIFY")
    return [one["object"] for one in found["warnings"]]


def homes(sim):
    return Counter(one.primary_node for one in sim.config.all(Instance))


@pytest.mark.requirement("S2-13")
async def test_five_adds_at_once_neither_overfill_a_node_nor_break_survival(sim):
    found = await sim.at_once(*(adding(f"w{at}", 18_000) for at in range(8)))
    # 60 GiB a node hold three of them; what two nodes hold is all there may be.
    assert len(found) == 2
    assert all(isinstance(error, NoCapacity) for error in found)
    assert sorted(homes(sim).values()) == [2, 2, 2]
    assert await warned(sim) == []


@pytest.mark.parametrize("template", ["drbd", "plain", "file", "sharedfile"])
async def test_adds_at_once_know_where_the_disks_of_the_others_will_be(sim, template):
    disks = {"disk_template": template, "disks": [{"size": 64}]}
    found = await sim.at_once(*(adding(f"w{at}", 512, **disks) for at in range(4)))
    assert [error.message for error in found] == []
    assert len(homes(sim)) == 3


@pytest.mark.requirement("S2-13")
async def test_one_after_the_other_is_the_same(sim):
    found = [await sim.at_once(adding(f"w{at}", 18_000)) for at in range(8)]
    assert [len(one) for one in found] == [0] * 6 + [1] * 2


async def test_adds_to_one_named_node_do_not_overfill_it(sim):
    found = await sim.at_once(
        *(adding(f"w{at}", 25_000, pnode="node1") for at in range(4))
    )
    assert len(found) == 2
    assert "node node1 cannot take instance" in found[0].message
    assert "memory (asked 25000, " in found[0].message.replace(" MiB", "")
    assert "--ignore-capacity" in found[0].hint


@pytest.mark.requirement("S2-13")
@pytest.mark.parametrize("op_id", ["OP_INSTANCE_MIGRATE", "OP_INSTANCE_FAILOVER"])
@pytest.mark.parametrize("named", [True, False])
async def test_moves_at_once_do_not_overfill_their_target(tmp_path, op_id, named):
    builder = ClusterBuilder(4)
    sim = await SimCluster.start(tmp_path, builder)
    for at in range(6):
        fields = adding(f"w{at}", 20_000, pnode=f"node{at // 2 + 1}")
        assert not await sim.at_once(fields)
    target = {"target_node": "node4"} if named else {}
    found = await sim.at_once(*(moving(op_id, f"w{at}", **target) for at in range(6)))
    assert max(homes(sim).values()) <= 3  # 20 GiB each, of 60
    if named:
        assert homes(sim)["node4"] == 3
    assert all(isinstance(error, NoCapacity) for error in found)
    await sim.stop()


async def test_disks_that_grow_at_once_share_the_room(tmp_path):
    builder = ClusterBuilder(2)
    sim = await SimCluster.start(tmp_path, builder)
    for at in range(3):
        fields = {"name": f"d{at}", "disk_template": "sharedfile", "size": 64}
        await sim.run("OP_DISK_ADD", **fields)
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
    growing = [
        {"OP_ID": "OP_DISK_GROW", "disk": f"d{at}", "amount": 400} for at in range(3)
    ]
    (error,) = await sim.at_once(*growing)
    assert isinstance(error, NoCapacity)
    assert "asked 400 MiB, free 200 MiB" in error.message
    await sim.stop()


async def test_disks_that_are_made_at_once_share_the_room(sim):
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
    made = [
        {"OP_ID": "OP_DISK_ADD", "name": f"d{at}", "disk_template": "sharedfile"}
        | {"size": 600}
        for at in range(2)
    ]
    (error,) = await sim.at_once(*made)
    assert isinstance(error, NoCapacity)
    big = {"OP_ID": "OP_DISK_ADD", "disk_template": "sharedfile", "size": 3 * 1024**2}
    (error,) = await sim.at_once(big)
    assert error.hint == "to do it all the same: --ignore-capacity"
    assert not await sim.at_once(big | {"ignore_capacity": True})


@pytest.mark.requirement("S2-13")
async def test_a_crash_keeps_what_was_chosen(sim):
    """The master dies while a guest is being made; its room stays taken."""
    reached = asyncio.Event()

    async def hold(name):
        if name == "before start w0 on node1":
            reached.set()
            sim.die()
            raise Crash(name)

    sim.extra_point = hold
    first = await sim.engine.submit([adding("w0", 32_000, pnode="node1")])
    await reached.wait()
    await sim.crash()

    waits = asyncio.Event()

    async def held(name):
        if "undoing" in name:
            await waits.wait()

    sim.extra_point = held
    await sim.boot()
    assert sim.engine.job(first).ops[0].claims
    (error,) = await sim.at_once(adding("w1", 32_000, pnode="node1"))
    assert isinstance(error, NoCapacity)
    waits.set()
    await sim.finished(first)
    assert not await sim.at_once(adding("w2", 32_000, pnode="node1"))


async def test_what_is_recorded_is_counted_once(sim):
    """Two of 25 GiB fit on a node; the first is counted as itself when it is there."""
    for name in ("w0", "w1"):
        assert not await sim.at_once(adding(name, 25_000, pnode="node1"))
    assert homes(sim)["node1"] == 2


@pytest.mark.requirement("S2-13")
async def test_room_that_was_told_before_a_disk_was_made_is_not_given_twice(sim):
    """An answer may be older than the end of the job whose disk it does not show."""
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
    started, told, gate = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hold(name):
        if name.startswith("before create"):
            started.set()
            await gate.wait()

    sim.extra_point = hold
    fields = {"disk_template": "sharedfile", "size": 600, "node": "node1"}
    first = await sim.submit("OP_DISK_ADD", name="d0", **fields)
    await started.wait()
    answer = sim.engine._waiting._answers

    async def late(asked):
        found = await answer(asked)
        gate.set()
        await told.wait()
        return found

    sim.engine._waiting._answers = late
    second = await sim.submit("OP_DISK_ADD", name="d1", **fields)
    await sim.finished(first)
    told.set()
    job = await sim.finished(second)
    assert isinstance(from_json(job.ops[0].error), NoCapacity)


@pytest.mark.requirement("S2-03", "S2-13")
@pytest.mark.parametrize("together", [True, False])
async def test_who_is_being_made_can_restart_only_where_its_provider_is(
    tmp_path, together
):
    """Nodes 1 and 2 have it; of the two that are added only one has a second place."""
    sim = await SimCluster.start(tmp_path, ClusterBuilder(4))
    for name in ("node3", "node4"):
        machine = sim.nodes.nodes[name].machine
        machine.installed = [one for one in PROVIDERS if one.name != "san"]
    local = {"disk_template": "file", "disks": [{"size": 64}]}
    assert not await sim.at_once(adding("local", 20_000, pnode="node2", **local))
    both = [adding("w0", 32_000, pnode="node1"), adding("w1", 25_000)]
    if together:
        found = await sim.at_once(*both)
    else:
        found = [error for one in both for error in await sim.at_once(one)]
    assert [type(error) for error in found] == [NoCapacity]
    await sim.stop()


async def test_snapshots_that_are_taken_at_once_share_the_room(sim):
    for at in range(2):
        fields = {"name": f"d{at}", "disk_template": "sharedfile", "size": 600}
        await sim.run("OP_DISK_ADD", **fields)
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
    taken = [{"OP_ID": "OP_DISK_SNAPSHOT", "disk": f"d{at}"} for at in range(2)]
    (error,) = await sim.at_once(*taken)
    assert isinstance(error, NoCapacity)
    assert "no room for a snapshot of disk d" in error.message
    assert error.hint == "to do it all the same: --ignore-capacity"
    assert not await sim.at_once(*(one | {"ignore_capacity": True} for one in taken))


@pytest.mark.parametrize("template", ["sharedfile", "file"])
async def test_a_named_node_has_room_for_all_disks_together(sim, template):
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
    made = {"disk_template": template, "pnode": "node1", "ignore_ipolicy": True}
    two = adding("w0", 512, disks=[{"size": 600}] * 2) | made
    (error,) = await sim.at_once(two)
    assert isinstance(error, NoCapacity)
    await sim.at_once({**adding("w1", 512, disks=[{"size": 600}]), **made})
    more = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "w1"}
    more["disks"] = [["add", {"size": 600}]] * 2
    (error,) = await sim.at_once(more)
    assert "asked 1200 MiB, free 1000 MiB" in error.message


@pytest.mark.parametrize("op_id", ["OP_NODE_EVACUATE", "OP_NODE_FAILOVER"])
async def test_who_is_on_the_way_to_another_group_is_left_to_that_job(tmp_path, op_id):
    """It comes to its new node while somebody else clears the old one."""
    sim = await SimCluster.start(tmp_path, ClusterBuilder(2).node("node9", "rack2"))
    assert not await sim.at_once(adding("w0", 512, pnode="node1"))
    clearing = {"OP_ID": op_id, "node_name": "node1"}
    if op_id == "OP_NODE_EVACUATE":
        clearing["mode"] = "primary-only"
    away = moving("OP_INSTANCE_CHANGE_GROUP", "w0", target_groups=["rack2"])
    found = await sim.at_once(away, *[clearing] * 8)
    why = "w0: another job is taking it to another node group"
    told = {error.message for error in found}
    assert told == {f"no instance can leave node node1: {why}"}
    await sim.stop()
