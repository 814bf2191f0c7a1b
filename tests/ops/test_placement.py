# SPDX-License-Identifier: BSD-2-Clause
"""Where instances go when nobody names a node: the planner, in-process."""

import asyncio

import pytest
from msgspec.structs import replace

from moorage.errors import NoCapacity, NotFound, WrongState
from moorage.model.ipolicy import cluster_policy
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import PROVIDERS


def roomy(nodes=3):
    """Return a cluster whose policy takes instances as large as its nodes."""
    largest = {"memory-size": 2**17, "disk-size": 2**24}
    policy = cluster_policy(ClusterBuilder(1).objects["cluster"])
    (pair,) = policy["minmax"]
    bounds = [{"min": pair["min"], "max": pair["max"] | largest}]
    builder = ClusterBuilder(nodes)
    cluster = replace(builder.objects["cluster"], ipolicy={"minmax": bounds})
    builder.objects["cluster"] = cluster
    return builder


@pytest.fixture
async def sim(tmp_path):
    cluster = await SimCluster.start(tmp_path, roomy(4))
    yield cluster
    await cluster.stop()


def home(sim, name):
    return sim.config.instance(name).primary_node


async def add(sim, name, memory=1024, **more):
    fields = {"disk_template": "ext", "disks": [{"size": 64, "provider": "san"}]}
    fields |= {"instance_name": name, "beparams": {"memory": memory}} | more
    return await sim.run("OP_INSTANCE_CREATE", **fields)


async def test_instances_are_spread_when_nobody_names_a_node(sim):
    for number in range(8):
        await add(sim, f"web{number}")
    homes = [home(sim, f"web{number}") for number in range(8)]
    assert sorted(map(homes.count, set(homes))) == [2, 2, 2, 2]


@pytest.mark.requirement("S0-16")
async def test_nodes_without_the_provider_are_not_chosen(tmp_path):
    builder = ClusterBuilder(2).node("far1", "far").node("far2", "far")
    sim = await SimCluster.start(tmp_path, builder)
    for name in ("node1", "node2"):
        machine = sim.nodes.nodes[name].machine
        machine.installed = [one for one in PROVIDERS if one.name != "san"]
    await add(sim, "web")
    assert home(sim, "web") in ("far1", "far2")
    before = sim.config.serial_no
    with pytest.raises(NotFound, match="no ExtStorage provider 'san'"):
        await add(sim, "other", group_name="default")
    assert sim.config.serial_no == before
    await sim.stop()


async def test_what_fits_nowhere_is_refused_with_reasons_and_a_remedy(sim):
    with pytest.raises(NoCapacity) as caught:
        await add(sim, "big", memory=70_000)
    error = caught.value
    assert "node1: memory (asked 70000 MiB, unallocated 61440 MiB)" in error.message
    less = int(error.hint.split()[3])
    with pytest.raises(NoCapacity):
        await add(sim, "big", memory=70_000 - less + 1)
    await add(sim, "big", memory=70_000 - less)


@pytest.mark.requirement("S4-03", "S4-09", "S2-14")
@pytest.mark.parametrize("template", ["file", "sharedfile"])
async def test_a_disk_larger_than_the_room_is_refused_with_its_unit(sim, template):
    room = 1024 * 1024  # what each simulated directory has
    with pytest.raises(NoCapacity) as caught:
        await add(sim, "big", disk_template=template, disks=[{"size": room + 64}])
    assert f"{template}/" in caught.value.message
    assert f"asked {room + 64} MiB" in caught.value.message
    await add(sim, "big", disk_template=template, disks=[{"size": room}])


@pytest.mark.requirement("S0-12")
async def test_migration_and_failover_choose_their_target(sim):
    await add(sim, "web", pnode="node1")
    await add(sim, "load", memory=30_000, pnode="node2")
    await sim.run("OP_INSTANCE_MIGRATE", instance_name="web")
    first = home(sim, "web")
    assert first in ("node3", "node4")
    await sim.run("OP_INSTANCE_FAILOVER", instance_name="web", iallocator="hail")
    assert home(sim, "web") not in (first, "node2")


@pytest.mark.requirement("S0-14")
async def test_an_evacuated_node_spreads_its_instances(sim):
    for number in range(6):
        await add(sim, f"web{number}", memory=8192, pnode="node1")
    result = await sim.run("OP_NODE_EVACUATE", node_name="node1")
    for _, job in result["jobs"]:
        await sim.finished(job)
    homes = [home(sim, f"web{number}") for number in range(6)]
    assert sorted(map(homes.count, ("node1", "node2", "node3", "node4"))) == [
        0,
        2,
        2,
        2,
    ]


async def test_verify_says_who_could_not_restart(sim):
    for number in range(1, 5):
        await add(sim, f"web{number}", memory=40_000, pnode=f"node{number}")
    found = await sim.run("OP_CLUSTER_VERIFY")
    assert found["errors"] == []
    assert [one["object"] for one in found["warnings"]] == [
        f"node node{number}" for number in range(1, 5)
    ]
    assert "no place to restart web1" in found["warnings"][0]["message"]


async def test_an_unknown_allocator_is_refused(sim):
    with pytest.raises(NotFound, match="there is no allocator 'dice'"):
        await add(sim, "web", iallocator="dice")


async def test_a_silent_node_is_not_chosen(sim):
    for name in ("node1", "node2", "node3"):
        sim.nodes.nodes[name].lose_power()
    await add(sim, "web", disk_template="diskless", disks=[])
    assert home(sim, "web") == "node4"


@pytest.mark.requirement("S2-03")
async def test_a_new_instance_could_not_restart_where_its_provider_is_missing(sim):
    """Nodes 1 and 2 are all there is to it: the others cannot stand in for them."""
    for name in ("node3", "node4"):
        machine = sim.nodes.nodes[name].machine
        machine.installed = [one for one in PROVIDERS if one.name != "san"]
    local = {"disk_template": "file", "disks": [{"size": 64}], "pnode": "node1"}
    await add(sim, "local", memory=40_000, **local)
    with pytest.raises(NoCapacity):
        await add(sim, "web", memory=40_000)
    await add(sim, "web", memory=40_000, ignore_capacity=True)
    assert home(sim, "web") == "node2"


@pytest.mark.requirement("S4-13")
async def test_room_on_shared_storage_is_one_for_all_nodes(sim):
    """What is being made from one node is taken from what the other one sees."""
    for node in sim.nodes.nodes.values():
        node.machine.room = 1000
    fields = {"disk_template": "sharedfile", "size": 600}
    numbers = [
        await sim.submit("OP_DISK_ADD", name=f"on-{node}", node=node, **fields)
        for node in ("node1", "node2")
    ]
    jobs = [await sim.finished(number) for number in numbers]
    assert sorted(job.status for job in jobs) == ["error", "success"]


@pytest.mark.requirement("S4-14")
async def test_storage_that_cannot_tell_its_room_refuses_nothing(sim):
    for node in sim.nodes.nodes.values():
        node.machine.room = None
    await add(sim, "web", disk_template="sharedfile", disks=[{"size": 64}])
    await sim.run("OP_DISK_ADD", disk_template="sharedfile", size=64, name="free")
    await sim.run("OP_DISK_GROW", disk="free", amount=64)


async def test_a_guest_that_is_on_its_way_counts_at_both_ends(sim):
    """Until it has gone it has its memory where it was, too."""
    await add(sim, "big", memory=50_000, pnode="node1")
    gate, reached = asyncio.Event(), asyncio.Event()

    async def hold(name):
        if name.startswith("before ") and "big" in name:
            reached.set()
            await gate.wait()

    sim.extra_point = hold
    move = {"instance_name": "big", "target_node": "node2"}
    moving = await sim.submit("OP_INSTANCE_MIGRATE", **move)
    await reached.wait()
    refused = await sim.refused(
        "OP_INSTANCE_CREATE",
        instance_name="new",
        disk_template="ext",
        disks=[{"size": 64, "provider": "san"}],
        beparams={"memory": 50_000},
        pnode="node1",
    )
    assert isinstance(refused, NoCapacity)
    gate.set()
    assert (await sim.finished(moving)).status == "success"
    await add(sim, "new", memory=50_000, pnode="node1")
    assert home(sim, "big") == "node2"


async def test_a_stopped_instance_may_move_to_a_full_node(sim):
    """It takes memory when it starts, not before."""
    await add(sim, "big", memory=50_000, pnode="node1")
    await add(sim, "asleep", memory=50_000, pnode="node2", start=False)
    move = {"instance_name": "asleep", "target_node": "node1"}
    await sim.run("OP_INSTANCE_FAILOVER", **move)
    assert home(sim, "asleep") == "node1"


async def test_groups_and_nodes_that_take_nobody_new(tmp_path):
    """A group that is unallocable, a node that is drained: by choice, and by name."""
    builder = ClusterBuilder(2).node("far1", "far").node("far2", "far")
    sim = await SimCluster.start(tmp_path, builder)
    await sim.run("OP_GROUP_SET_PARAMS", group_name="far", alloc_policy="unallocable")
    await sim.run("OP_NODE_SET_PARAMS", node_name="node2", drained=True)
    for number in range(4):
        await add(sim, f"web{number}", memory=128)
        assert home(sim, f"web{number}") == "node1"
    with pytest.raises(WrongState, match="it is drained"):
        await add(sim, "other", pnode="node2")
    await add(sim, "other", pnode="far1")
    await sim.run("OP_NODE_SET_PARAMS", node_name="far2", drained=True)
    await sim.refused("OP_INSTANCE_MIGRATE", instance_name="other")
    assert home(sim, "other") == "far1"
    await sim.stop()


async def test_a_group_of_last_resort_comes_last(tmp_path):
    builder = ClusterBuilder(2).node("far1", "far").node("far2", "far")
    sim = await SimCluster.start(tmp_path, builder)
    fields = {"group_name": "default", "alloc_policy": "last_resort"}
    await sim.run("OP_GROUP_SET_PARAMS", **fields)
    for number in range(4):
        await add(sim, f"web{number}")
        assert home(sim, f"web{number}") in ("far1", "far2")
    await sim.stop()


async def test_instances_that_exclude_each_other_are_kept_apart(tmp_path):
    """Also while both are being made."""
    builder = ClusterBuilder(2)
    cluster = replace(builder.objects["cluster"], tags=("htools:iextags:role",))
    builder.objects["cluster"] = cluster
    sim = await SimCluster.start(tmp_path, builder)
    await add(sim, "full", memory=20_000, pnode="node2")
    fields = {
        "disk_template": "ext",
        "disks": [{"size": 64, "provider": "san"}],
        "beparams": {"memory": 128},
        "tags": ["role:dns"],
    }
    numbers = [
        await sim.submit("OP_INSTANCE_CREATE", instance_name=name, **fields)
        for name in ("dns1", "dns2")
    ]
    for number in numbers:
        assert (await sim.finished(number)).status == "success"
    assert {home(sim, "dns1"), home(sim, "dns2")} == {"node1", "node2"}
    await sim.stop()


async def test_who_has_one_disk_that_stays_does_not_move(sim):
    """A disk of one node among others keeps its instance, and verify knows."""
    both = [
        {"size": 64, "dev_type": "ext", "provider": "san"},
        {"size": 64, "dev_type": "file"},
    ]
    await add(sim, "mixed", disks=both, pnode="node1")
    await add(sim, "free", pnode="node1")
    found = await sim.run("OP_NODE_EVACUATE", node_name="node1", mode="primary-only")
    assert found["names"] == ["free"]
    assert list(found["stayed"]) == ["mixed"]


async def test_the_first_attach_is_counted(sim):
    """The disk is born attached; the node remembers that, and so does the record."""
    await add(sim, "web", pnode="node1")
    (disk,) = sim.config.disks_of(sim.config.instance("web"))
    (held,) = sim.nodes.nodes["node1"].agent._context.attachments.all()
    assert (disk.epoch, held.epoch) == (1, 1)
