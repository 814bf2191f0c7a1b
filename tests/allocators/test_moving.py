# SPDX-License-Identifier: BSD-2-Clause
"""Instances that go to another node or group: where an external allocator says."""

from pathlib import Path

import pytest

from allocating import MIRRORED, Shelf, add, asks, home, needs_hail
from moorage.errors import AllocatorFailed
from moorage.testing.cluster import ClusterBuilder, SimCluster


async def test_an_instance_is_relocated(sim: SimCluster, programs: Shelf) -> None:
    await add(sim, "web1", pnode="node1")
    programs.names("mine", "node3")
    await sim.run("OP_INSTANCE_MIGRATE", instance_name="web1", iallocator="mine")
    assert home(sim, "web1") == "node3"
    request = programs.seen("mine")["request"]
    assert request["type"] == "relocate"
    assert request["relocate_from"] == ["node1"]
    programs.names("mine", "node3")
    with pytest.raises(AllocatorFailed, match="node3 for instance web1, which is not"):
        await sim.run("OP_INSTANCE_FAILOVER", instance_name="web1", iallocator="mine")


async def test_second_copies_go_where_it_says(sim: SimCluster, programs: Shelf) -> None:
    await add(sim, "db", pnode="node1", snode="node2", **MIRRORED)
    programs.names("mine", "node4")
    await sim.run(
        "OP_INSTANCE_REPLACE_DISKS",
        instance_name="db",
        mode="replace_new_secondary",
        iallocator="mine",
    )
    (disk,) = sim.config.disks_of(sim.config.instance("db"))
    assert disk.nodes == ("node1", "node4")
    assert programs.seen("mine")["request"]["relocate_from"] == ["node2"]


async def test_a_node_is_evacuated(sim: SimCluster, programs: Shelf) -> None:
    for name in ("web1", "web2", "web3"):
        await add(sim, name, pnode="node1")
    programs.moves("mine", {"web1": ["node2"], "web2": ["node3"]}, "web3")
    told = await sim.run("OP_NODE_EVACUATE", node_name="node1", iallocator="mine")
    assert told["stayed"] == {"web3": "allocator 'mine' finds no node: it is bound"}
    for _, job in told["jobs"]:
        assert (await sim.finished(job)).status == "success"
    assert (home(sim, "web1"), home(sim, "web2")) == ("node2", "node3")
    assert programs.seen("mine")["request"]["instances"] == ["web1", "web2", "web3"]


async def test_an_instance_changes_its_group(tmp_path: Path, programs: Shelf) -> None:
    builder = ClusterBuilder(2).node("far1", "far").node("far2", "far")
    sim = await asks(tmp_path, programs, builder)
    await add(sim, "web1", pnode="node1")
    programs.moves("mine", {"web1": ["far2"]})
    await sim.run("OP_INSTANCE_CHANGE_GROUP", instance_name="web1", iallocator="mine")
    await sim.nodes.settle()
    assert programs.seen("mine")["request"]["target_groups"] == ["far"]
    await sim.stop()


@needs_hail
async def test_ganetis_hail_moves_instances(tmp_path: Path, programs: Shelf) -> None:
    builder = ClusterBuilder(4).node("far1", "far").node("far2", "far")
    sim = await asks(tmp_path, programs, builder)
    programs.ganetis("theirs")
    await sim.run("OP_CLUSTER_SET_PARAMS", default_iallocator="theirs")
    await add(sim, "web1", pnode="node1")
    await add(sim, "web2", pnode="node1")
    await add(sim, "db", pnode="node2", snode="node1", **MIRRORED)
    await sim.run("OP_INSTANCE_MIGRATE", instance_name="web1")
    assert home(sim, "web1") != "node1"
    told = await sim.run("OP_NODE_EVACUATE", node_name="node1", mode="all")
    for _, job in told["jobs"]:
        done = await sim.finished(job)
        assert done.status == "success", done.ops[0].result
    assert not sim.config.instances_on(sim.config.node("node1"))
    assert not sim.config.mirrored_on(sim.config.node("node1"))
    told = await sim.run("OP_INSTANCE_CHANGE_GROUP", instance_name="web2")
    for _, job in told["jobs"]:
        assert (await sim.finished(job)).status == "success"
    assert home(sim, "web2").startswith("far")
    await sim.stop()


@pytest.mark.parametrize("op_id", ["OP_NODE_MIGRATE", "OP_NODE_FAILOVER"])
async def test_a_nodes_instances_go_where_it_says(
    sim: SimCluster, programs: Shelf, op_id: str
) -> None:
    for name in ("web1", "web2"):
        await add(sim, name, pnode="node1")
    programs.moves("mine", {"web1": ["node2"], "web2": ["node4"]})
    told = await sim.run(op_id, node_name="node1", iallocator="mine")
    for _, job in told["jobs"]:
        assert (await sim.finished(job)).status == "success"
    assert (home(sim, "web1"), home(sim, "web2")) == ("node2", "node4")


@pytest.mark.parametrize("strange", ["web3", "mars"])
async def test_of_whom_it_was_not_asked_it_may_not_speak(
    sim: SimCluster, programs: Shelf, strange: str
) -> None:
    await add(sim, "web1", pnode="node1")
    await add(sim, "web3", pnode="node2")
    programs.moves("mine", {"web1": ["node2"], strange: ["node4"]})
    error = await sim.refused("OP_NODE_EVACUATE", node_name="node1", iallocator="mine")
    assert isinstance(error, AllocatorFailed)
    assert f"speaks of instance {strange}" in error.message


async def test_a_group_is_emptied_into_another(tmp_path: Path, programs: Shelf) -> None:
    builder = ClusterBuilder(2).node("far1", "far").node("far2", "far")
    sim = await asks(tmp_path, programs, builder)
    await add(sim, "web1", pnode="node1")
    programs.moves("mine", {"web1": ["far2"]})
    fields = {"group_name": "default", "iallocator": "mine"}
    told = await sim.run("OP_GROUP_EVACUATE", **fields)
    for _, job in told["jobs"]:
        done = await sim.finished(job)
        assert done.status == "success"
        for _, more in done.ops[0].result["jobs"]:
            assert (await sim.finished(more)).status == "success"
    assert home(sim, "web1") == "far2"
    await sim.stop()
