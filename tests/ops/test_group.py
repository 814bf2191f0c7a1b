# SPDX-License-Identifier: BSD-2-Clause
"""Operations on node groups."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.errors import BadInput, Exists, NotFound, WrongState
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder(nodes=3).node("far1", "far")
    builder.disk("d1").instance("i1", "node1", ("d1",)).instance("i2", "node2")
    builder.disk("local", "file", logical_id=("loop", "/local/x"), nodes=("node2",))
    cluster = await SimCluster.start(tmp_path, builder)
    yield cluster
    await cluster.stop()


async def test_a_group_is_made(sim):
    await sim.run("OP_GROUP_ADD", group_name="rack2", alloc_policy="last_resort")
    group = sim.config.group("rack2")
    assert (group.alloc_policy, group.ctime) == ("last_resort", 1000.0)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"group_name": "far"}, Exists),
        ({"group_name": "a/b"}, BadInput),
        ({"group_name": ""}, BadInput),
        ({"group_name": "x", "alloc_policy": "never"}, BadInput),
        ({"group_name": "x", "colour": "red"}, BadInput),
        ({}, BadInput),
    ],
)
async def test_bad_groups_are_refused(sim, fields, kind):
    before = sim.config.serial_no
    assert isinstance(await sim.refused("OP_GROUP_ADD", **fields), kind)
    assert sim.config.serial_no == before


async def test_a_group_is_renamed(sim):
    result = await sim.run("OP_GROUP_RENAME", group_name="far", new_name="near")
    assert result == "near"
    assert [node.name for node in sim.config.nodes_in(sim.config.group("near"))] == [
        "far1"
    ]
    error = await sim.refused("OP_GROUP_RENAME", group_name="near", new_name="default")
    assert isinstance(error, Exists)
    error = await sim.refused("OP_GROUP_RENAME", group_name="gone", new_name="x")
    assert isinstance(error, NotFound)


async def test_a_group_with_nodes_stays(sim):
    error = await sim.refused("OP_GROUP_REMOVE", group_name="far")
    assert isinstance(error, WrongState)
    assert error.hint == "gnt-group assign-nodes OTHER_GROUP far1"


async def test_a_group_that_detached_disks_need_stays(tmp_path):
    builder = ClusterBuilder().node("far1", "far").disk("d1", group="far")
    sim = await SimCluster.start(tmp_path, builder)
    await sim.run("OP_GROUP_ASSIGN_NODES", group_name="default", nodes=["far1"])
    error = await sim.refused("OP_GROUP_REMOVE", group_name="far")
    assert "1 detached disks" in error.message
    await sim.stop()


async def test_an_empty_group_goes_and_the_last_one_stays(tmp_path):
    sim = await SimCluster.start(tmp_path, ClusterBuilder().node("far1", "far"))
    await sim.run("OP_GROUP_ASSIGN_NODES", group_name="default", nodes=["far1"])
    await sim.run("OP_GROUP_REMOVE", group_name="far")
    assert [group.name for group in sim.config.named(type(sim.config.group("default")))]
    error = await sim.refused("OP_GROUP_REMOVE", group_name="default")
    assert "still has the nodes" in error.message
    await sim.stop()


async def test_a_group_is_modified(sim):
    fields = {"group_name": "far", "alloc_policy": "unallocable"}
    given = {"cpu_speed": 1.0, "spindle_count": 2}
    result = await sim.run("OP_GROUP_SET_PARAMS", ndparams=given, **fields)
    assert result == [["alloc_policy", "unallocable"], ["ndparams", given]]
    back = {"cpu_speed": "default"}
    await sim.run("OP_GROUP_SET_PARAMS", group_name="far", ndparams=back)
    assert sim.config.group("far").ndparams == {"spindle_count": 2}
    error = await sim.refused("OP_GROUP_SET_PARAMS", group_name="far")
    assert isinstance(error, BadInput)


async def test_nodes_change_their_group_and_take_their_disks_along(sim):
    await sim.run("OP_GROUP_ASSIGN_NODES", group_name="far", nodes=["node2", "far1"])
    assert sim.config.node("node2").group == "far"
    assert sim.config.disk("local").group == "far"


async def test_a_node_does_not_tear_disks_out_of_their_group(sim):
    fields = {"group_name": "far", "nodes": ["node3", "node1"]}
    error = await sim.refused("OP_GROUP_ASSIGN_NODES", **fields)
    assert "instance i1 on node node1 has disk d1" in error.message
    assert error.hint == "gnt-node evacuate node1"
    assert sim.config.node("node3").group == "default"
    await sim.run("OP_GROUP_ASSIGN_NODES", force=True, **fields)
    assert sim.config.disk("d1").group == "far"


async def test_nothing_happens_for_nodes_that_are_there(sim):
    before = sim.config.serial_no
    await sim.run("OP_GROUP_ASSIGN_NODES", group_name="far", nodes=["far1"])
    assert sim.config.serial_no == before
    error = await sim.refused("OP_GROUP_ASSIGN_NODES", group_name="far", nodes=[])
    assert isinstance(error, BadInput)
