# SPDX-License-Identifier: BSD-2-Clause
"""Where storage pools are connected, and that they stay while they are in use."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pooling import ADD, CONNECT, DISCONNECT, MODIFY, REMOVE, disk, pooled, town

from moorage.errors import BadInput, MoorageError, WrongState
from moorage.testing.cluster import SimCluster


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await town(tmp_path)
    yield cluster
    await cluster.stop()


# -- mobility domains ------------------------------------------------------------------


@pytest.mark.requirement("S0-82")
async def test_a_pool_that_is_connected_nowhere_holds_no_disk(sim: SimCluster) -> None:
    await pooled(sim, groups=[])
    error = await sim.refused("OP_DISK_ADD", pool="nas1", size=64, group="default")
    assert "storage pool 'nas1' is not connected to node group default" in str(error)
    assert error.hint == "gnt-storage pool connect nas1 default"
    await sim.run(CONNECT, pool_name="nas1", groups=["default"])
    await disk(sim)


@pytest.mark.requirement("S0-82", "S0-86")
async def test_disks_are_made_where_the_pool_is_connected(sim: SimCluster) -> None:
    await pooled(sim, groups=["far"])
    made = await disk(sim)  # there is one group alone that it can be in
    assert made.group == "far"
    await sim.run(
        "OP_INSTANCE_CREATE",
        instance_name="new",
        disks=[{"size": 64, "pool": "nas1"}],
    )
    assert sim.config.instance("new").primary_node.startswith("far")
    fields = {"instance_name": "x", "disks": [{"size": 64, "pool": "nas1"}]}
    error = await sim.refused("OP_INSTANCE_CREATE", pnode="node1", **fields)
    assert "is not connected to node group default, only to far" in str(error)
    error = await sim.refused("OP_INSTANCE_CREATE", group_name="default", **fields)
    assert "is not connected to node group default, only to far" in str(error)


@pytest.mark.requirement("S0-82")
@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_INSTANCE_MIGRATE", {"instance_name": "new", "target_node": "far1"}),
        ("OP_INSTANCE_FAILOVER", {"instance_name": "new", "target_node": "far1"}),
        ("OP_DISK_ATTACH", {"disk": "d", "instance_name": "away"}),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"instance_name": "away", "disks": [["attach", "-1", {"name": "d"}]]},
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"instance_name": "away", "disks": [["add", "-1", {"pool": "nas1"}]]},
        ),
        ("OP_GROUP_ASSIGN_NODES", {"group_name": "far", "nodes": ["node1"]}),
        (
            "OP_GROUP_ASSIGN_NODES",
            {"group_name": "far", "nodes": ["node1"], "force": True},
        ),
    ],
)
async def test_no_disk_leaves_the_groups_of_its_pool(
    sim: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    """Part of the row: named targets. Where nobody names one, the group stays."""
    await pooled(sim)
    await disk(sim)
    made = {"pnode": "node1", "disks": [{"size": 64, "pool": "nas1"}]}
    await sim.run("OP_INSTANCE_CREATE", instance_name="new", **made)
    other = {"pnode": "far1", "disk_template": "diskless"}
    await sim.run("OP_INSTANCE_CREATE", instance_name="away", **other)
    before = sim.config.serial_no
    error = await sim.refused(op_id, **fields)
    assert "is not connected to node group far" in str(error) or "which is reached" in (
        str(error)
    )
    assert sim.config.serial_no == before
    if fields.get("force") is not None or "nodes" not in fields:
        await sim.run(CONNECT, pool_name="nas1", groups=["far"])
        if "disks" in fields and "pool" in str(fields):
            fields["disks"][0][2]["size"] = 64
        await sim.run(op_id, **fields)


@pytest.mark.requirement("S0-82")
@pytest.mark.parametrize("connected", [["default"], ["default", "far"]])
async def test_the_planner_leaves_nobody_out_of_reach_of_a_pool(
    sim: SimCluster, connected: list[str]
) -> None:
    """The rest of the row: who names no target stays where the pool is."""
    await pooled(sim, groups=connected)
    made = {"pnode": "node1", "disks": [{"size": 64, "pool": "nas1"}]}
    await sim.run("OP_INSTANCE_CREATE", instance_name="new", **made)
    for op_id in ("OP_INSTANCE_MIGRATE", "OP_INSTANCE_FAILOVER"):
        before = sim.config.instance("new").primary_node
        await sim.run(op_id, instance_name="new")
        assert sim.config.instance("new").primary_node in {"node1", "node2"} - {before}
    told = await sim.run("OP_NODE_EVACUATE", node_name="node1", mode="primary-only")
    assert told["stayed"] == {}
    fields = {"instance_name": "x", "disks": [{"size": 64, "pool": "nas1"}]}
    for number in range(4):
        await sim.run("OP_INSTANCE_CREATE", **fields | {"instance_name": f"x{number}"})
        home = sim.config.node(sim.config.instance(f"x{number}").primary_node)
        assert home.group in sim.config.pool("nas1").groups


@pytest.mark.requirement("S0-82")
async def test_an_emptied_node_keeps_whom_its_pools_hold(sim: SimCluster) -> None:
    await pooled(sim)
    made = {"pnode": "node1", "disks": [{"size": 64, "pool": "nas1"}]}
    await sim.run("OP_INSTANCE_CREATE", instance_name="new", **made)
    fields = {"node_name": "node1", "target_node": "far1"}
    error = await sim.refused("OP_NODE_MIGRATE", **fields)
    assert "is not connected to node group far" in str(error)
    fields = {"node_name": "node1", "remote_node": "far1", "mode": "primary-only"}
    told = await sim.run("OP_NODE_EVACUATE", **fields)
    assert told["names"] == ["web"]
    assert "is not connected to node group far" in told["stayed"]["new"]


@pytest.mark.requirement("S0-82", "S0-86")
async def test_a_group_where_the_pool_does_not_work_is_not_connected(
    sim: SimCluster,
) -> None:
    machine = sim.nodes.nodes["far2"].machine
    machine.installed = [one for one in machine.installed if one.name != "san"]
    await pooled(sim)
    error = await sim.refused(CONNECT, pool_name="nas1", groups=["far"])
    assert str(error) == (
        "storage pool 'nas1' does not work on node far2 of node group far: "
        "there is no ExtStorage provider 'san'"
    )
    error = await sim.refused(ADD, pool_name="q", provider="san", groups=["far"])
    assert "does not work on node far2" in str(error)
    sim.nodes.nodes["far1"].lose_power()
    error = await sim.refused(CONNECT, pool_name="nas1", groups=["far"])
    assert isinstance(error, MoorageError)
    assert sim.config.pool("nas1").groups == ("default",)


async def test_a_directory_must_be_there_on_every_node(sim: SimCluster) -> None:
    sim.nodes.nodes["far1"].machine.missing.add("/shared/ssd")
    files = {"disk_template": "sharedfile", "params": {"directory": "/shared/ssd"}}
    await sim.run(ADD, pool_name="ssd", groups=["default"], **files)
    error = await sim.refused(CONNECT, pool_name="ssd", groups=["far"])
    assert "on node far1 of node group far: there is no directory /shared/ssd" in (
        str(error)
    )
    sim.nodes.nodes["node2"].machine.missing.add("/shared/hdd")
    error = await sim.refused(
        MODIFY, pool_name="ssd", params={"directory": "/shared/hdd"}
    )
    assert "on node node2 of node group default: there is no directory" in str(error)


@pytest.mark.requirement("S0-81", "S0-86")
@pytest.mark.parametrize("attached", [True, False])
async def test_a_pool_in_use_stays_and_says_who_uses_it(
    sim: SimCluster, attached: bool
) -> None:
    await pooled(sim)
    await sim.run(CONNECT, pool_name="nas1", groups=["far"])
    made = await disk(sim, group="default")
    if attached:
        await sim.run("OP_DISK_ATTACH", disk="d", instance_name="web")
    whose = "web" if attached else "detached"
    for op_id, more in ((REMOVE, {}), (DISCONNECT, {"groups": ["default"]})):
        error = await sim.refused(op_id, pool_name="nas1", **more)
        assert isinstance(error, WrongState)
        assert f"a disk uses it: d ({whose})" in str(error)
        assert error.facts["disks"] == [made.uuid]
        assert error.hint == "gnt-disk list 'pool == \"nas1\"'"
    await sim.run(DISCONNECT, pool_name="nas1", groups=["far"])
    assert sim.config.pool("nas1").groups == ("default",)
    if attached:
        await sim.run("OP_DISK_DETACH", disk="d")
    await sim.run("OP_DISK_REMOVE", disk="d")
    await sim.run(DISCONNECT, pool_name="nas1", groups=["default"])
    await sim.run(REMOVE, pool_name="nas1")


async def test_a_connected_group_stays(sim: SimCluster) -> None:
    await sim.run("OP_GROUP_ADD", group_name="new")
    error = await sim.refused(ADD, pool_name="p", provider="san", groups=["new"])
    assert "no node of node group new is online" in str(error)
    await pooled(sim, groups=["far"])
    nodes = {"nodes": ["far1", "far2"], "force": True}
    await sim.run("OP_GROUP_ASSIGN_NODES", group_name="default", **nodes)
    error = await sim.refused("OP_GROUP_REMOVE", group_name="far")
    assert error.hint == "gnt-storage pool disconnect nas1 far"
    await sim.run(DISCONNECT, pool_name="nas1", groups=["far"])
    await sim.run("OP_GROUP_REMOVE", group_name="far")


@pytest.mark.parametrize("op_id", [CONNECT, DISCONNECT])
async def test_a_group_must_be_named(sim: SimCluster, op_id: str) -> None:
    await pooled(sim)
    error = await sim.refused(op_id, pool_name="nas1", groups=[])
    assert isinstance(error, BadInput)
    await sim.run(CONNECT, pool_name="nas1", groups=["default"])  # it is already
    assert sim.config.pool("nas1").serial_no == 1
    error = await sim.refused(DISCONNECT, pool_name="nas1", groups=["far"])
    assert "is not connected to node group far" in str(error)


# -- two at a time ---------------------------------------------------------------------


@pytest.mark.requirement("S0-81")
async def test_a_pool_does_not_go_while_a_disk_comes(sim: SimCluster) -> None:
    await pooled(sim)
    found = await sim.at_once(
        {"OP_ID": "OP_DISK_ADD", "pool": "nas1", "size": 64},
        {"OP_ID": REMOVE, "pool_name": "nas1"},
    )
    assert str(found[0]).startswith(
        "storage pool 'nas1' cannot be removed: a disk uses it"
    )
    assert len(sim.nodes.san.volumes) == 1


# -- other templates -------------------------------------------------------------------


@pytest.mark.requirement("S0-82", "S0-87")
@pytest.mark.parametrize(
    ("template", "params"), [("plain", {"vg": "nosuch"}), ("rbd", {"pool": "nosuch"})]
)
async def test_a_place_that_no_node_has_is_not_connected(
    sim: SimCluster, template: str, params: dict[str, str]
) -> None:
    fields = {"disk_template": template, "params": params, "groups": ["default"]}
    error = await sim.refused(ADD, pool_name="p", **fields)
    assert "does not work on node node1 of node group default: " in str(error)
    assert "nosuch" in str(error)


async def test_a_pool_may_be_a_volume_group(sim: SimCluster) -> None:
    fields = {"disk_template": "plain", "provider": None, "params": {"vg": "xenvg"}}
    await pooled(sim, "lvm", volume_name="{pool}-{short}", **fields)
    made = await disk(sim, pool="lvm", node="node1")
    assert made.logical_id[0] == "xenvg"
    assert made.volume.startswith("lvm-")
    assert made.nodes == ("node1",)
    error = await sim.refused("OP_DISK_ADD", pool="lvm", size=64, node="far1")
    assert "is not connected to node group far" in str(error)


async def test_a_pool_may_be_a_pool_of_ceph(sim: SimCluster) -> None:
    fields = {"disk_template": "rbd", "provider": None, "params": {"pool": "rbd"}}
    await pooled(sim, "ceph", **fields)
    made = await disk(sim, pool="ceph")
    assert (made.dev_type, made.params["pool"]) == ("rbd", "rbd")
    assert sim.config.pool_of(made) == sim.config.pool("ceph")
