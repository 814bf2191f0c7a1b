# SPDX-License-Identifier: BSD-2-Clause
"""The diagnoses of ExtStorage providers and operating systems."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.model import Change, successor
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import provider


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2).node("far1", "far"))
    yield cluster
    await cluster.stop()


async def diagnose(sim: SimCluster, **fields) -> dict[str, list]:
    rows = await sim.run("OP_EXT_STORAGE_DIAGNOSE", **fields)
    return {row[0]: row[1:] for row in rows}


@pytest.mark.requirement("S0-24", "S0-63", "S0-64")
async def test_a_provider_is_valid_where_every_node_of_a_group_has_it(sim):
    sim.nodes.nodes["node2"].machine.installed = [provider("san", tier="a", dir="b")]
    found = await diagnose(sim)
    assert list(found) == ["plainsan", "san", "usersan"]
    nodes, groups, parameters = found["san"]
    assert groups == {"default": True, "far": True}
    assert parameters == [["tier", "ssd or hdd"]]
    (path, valid, message, told), *rest = nodes["node2"]
    assert (valid, message, rest) == (True, "", [])
    assert path.endswith("/san")
    assert told == [["dir", "b"], ["tier", "a"]]
    nodes, groups, _ = found["plainsan"]
    assert nodes["node2"] == []
    assert groups == {"default": False, "far": True}


@pytest.mark.requirement("S0-23")
async def test_a_provider_is_never_copied_to_a_node_that_lacks_it(sim):
    sim.nodes.nodes["node2"].machine.installed = []
    sim.nodes.calls.clear()
    await sim.run("OP_CLUSTER_REDIST_CONF")
    assert sim.nodes.calls == []
    nodes, groups, _ = (await diagnose(sim, names=["san"]))["san"]
    assert nodes["node2"] == []
    assert groups == {"default": False, "far": True}


@pytest.mark.requirement("S0-24")
async def test_a_broken_provider_says_what_is_wrong(sim):
    machine = sim.nodes.nodes["far1"].machine
    broken = replace(provider("san"), problem="File 'grow' is missing")
    machine.installed = [broken, provider("san")]
    nodes, groups, _ = (await diagnose(sim, names=["san"]))["san"]
    assert [entry[1:3] for entry in nodes["far1"]] == [
        [False, "File 'grow' is missing"],
        [True, ""],
    ]
    assert groups == {"default": True, "far": False}


@pytest.mark.requirement("S0-24")
async def test_nodes_that_are_off_do_not_count_and_silent_ones_do(sim):
    sim.nodes.nodes["node2"].lose_power()
    nodes, groups, _ = (await diagnose(sim))["san"]
    assert groups == {"default": False, "far": True}
    assert "no answer" in nodes["node2"][0][2]
    await sim.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    nodes, groups, _ = (await diagnose(sim))["san"]
    assert groups == {"default": True, "far": True}
    assert "node2" not in nodes
    await sim.run("OP_NODE_SET_PARAMS", node_name="far1", offline=True)
    assert (await diagnose(sim))["san"][1] == {"default": True, "far": False}


async def test_columns_and_names_are_chosen(sim):
    fields = {"output_fields": ["nodegroup_status", "name"], "names": ["san", "x"]}
    rows = await sim.run("OP_EXT_STORAGE_DIAGNOSE", **fields)
    assert rows == [[{"default": True, "far": True}, "san"]]
    error = await sim.refused("OP_EXT_STORAGE_DIAGNOSE", output_fields=["size"])
    assert isinstance(error, BadInput)
    assert "nodegroup_status" in error.message


async def test_systems_that_every_node_has_are_valid(sim):
    ((name, valid, variants, parameters, nodes, *_),) = await sim.run("OP_OS_DIAGNOSE")
    assert (name, valid, variants, parameters) == ("tiny", True, [], [])
    assert nodes["node1"] == [["/sim/os/tiny", True, "", [], [], [20], True]]
    sim.nodes.nodes["node1"].lose_power()
    wanted = ["valid", "node_status"]
    ((valid, nodes),) = await sim.run("OP_OS_DIAGNOSE", output_fields=wanted)
    assert not valid
    ((_, _, why, *rest),) = nodes["node1"]
    assert why.startswith("no answer")
    assert rest == [[], [], [], True]
    error = await sim.refused("OP_OS_DIAGNOSE", output_fields=["colour"])
    assert isinstance(error, BadInput)


@pytest.mark.requirement("S0-24")
async def test_only_nodes_that_are_on_and_may_run_instances_count(sim):
    """One that is marked offline, or not vm_capable, is neither asked nor counted."""
    for name in ("node1", "node2"):
        sim.nodes.nodes[name].machine.installed = []
    assert (await diagnose(sim))["san"][1] == {"default": False, "far": True}
    sim.nodes.nodes["node1"].machine.installed = [provider("san")]
    assert (await diagnose(sim))["san"][1] == {"default": False, "far": True}
    for change in ({"offline": True}, {"offline": False, "vm_capable": False}):
        node2 = successor(sim.config.node("node2"), 1.0, **change)
        await sim.config_store.commit(Change((node2,)))
        nodes, groups, _ = (await diagnose(sim))["san"]
        assert groups == {"default": True, "far": True}
        assert "node2" not in nodes
