# SPDX-License-Identifier: BSD-2-Clause
"""What each node has for the disks of templates and pools, and what verify says."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.disk_templates import LIMITED
from moorage.errors import BadInput
from moorage.model import Need
from moorage.node.verbs.storage import LAST_LINES, _in_a_line
from moorage.storage import TEMPLATES
from moorage.testing.cluster import ClusterBuilder, SimCluster

ADD = "OP_STORAGE_POOL_ADD"


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder(nodes=2).node("far1", "far")
    cluster = await SimCluster.start(tmp_path, builder.instance("web", "node1"))
    files = {"disk_template": "sharedfile", "params": {"directory": "/shared/ssd"}}
    await cluster.run(ADD, pool_name="ssd", groups=["default"], **files)
    await cluster.run(ADD, pool_name="nas", groups=["default"], provider="san")
    yield cluster
    await cluster.stop()


async def diagnosed(sim: SimCluster, *names: str) -> dict[str, dict[str, Any]]:
    columns = ["template", "pool", "driver", "node_status", "nodegroup_status"]
    rows = await sim.run("OP_STORAGE_DIAGNOSE", output_fields=columns, names=names)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return {str(one["pool"] or one["template"]): one for one in found}


@pytest.mark.requirement("S0-87")
async def test_every_template_without_providers_is_diagnosed(sim: SimCluster) -> None:
    found = await diagnosed(sim)
    own = {name for name, one in TEMPLATES.items() if not one.capabilities.provider}
    assert own <= found.keys()
    internal = {"plain", "drbd", "file", "sharedfile", "gluster", "rbd", "blockdev"}
    assert internal <= own
    shared = found["sharedfile"]
    assert shared["node_status"]["far1"] == ["/shared", True, "", 1048576, 1048576]
    assert shared["nodegroup_status"] == {"default": True, "far": True}


@pytest.mark.requirement("S0-87")
async def test_what_a_node_lacks_is_told(sim: SimCluster) -> None:
    sim.nodes.nodes["node1"].machine.lacking.add("blockdev")
    sim.nodes.nodes["node2"].machine.missing |= {"/local", "/shared/ssd"}
    sim.nodes.nodes["far1"].machine.lacking.add("fallocate")
    found = await diagnosed(sim)
    devices = found["blockdev"]["node_status"]
    assert devices["node1"][1:3] == [False, "program blockdev is not installed"]
    assert found["blockdev"]["nodegroup_status"] == {"default": False, "far": True}
    files = found["file"]["node_status"]
    assert files["node2"][2] == "there is no directory /local"
    assert files["far1"][2] == "program fallocate is not installed"
    pool = found["ssd"]["node_status"]
    assert pool.keys() == {"node1", "node2"}
    assert pool["node2"][2] == "there is no directory /shared/ssd"
    assert found["ssd"]["nodegroup_status"] == {"default": False}


@pytest.mark.requirement("S0-87")
async def test_drbd_needs_its_module_and_both_volume_groups(sim: SimCluster) -> None:
    groups = {"vg": "xenvg", "metavg": "nosuch"}
    fields = {"disk_template": "drbd", "params": groups, "groups": ["default"]}
    error = await sim.refused(ADD, pool_name="p", **fields)
    assert "there is no volume group nosuch" in str(error)
    fields["params"] = {"vg": "xenvg"}
    await sim.run(ADD, pool_name="p", **fields)
    sim.nodes.nodes["node2"].machine.lacking.add("drbd")
    (pool,) = (await diagnosed(sim, "p")).values()
    assert pool["node_status"]["node1"][1]
    assert pool["node_status"]["node2"][2] == "the kernel has no module drbd"


async def test_a_silent_node_proves_nothing(sim: SimCluster) -> None:
    sim.nodes.nodes["far1"].lose_power()
    (one,) = (await diagnosed(sim, "sharedfile")).values()
    assert one["nodegroup_status"] == {"default": True, "far": False}
    assert one["node_status"]["far1"][2].startswith("no answer: ")


async def test_a_directory_that_is_not_set_is_told(sim: SimCluster) -> None:
    await sim.run("OP_CLUSTER_SET_PARAMS", file_storage_dir="")
    (one,) = (await diagnosed(sim, "file")).values()
    why = "no directory is set for disk template 'file'"
    assert one["node_status"]["node1"][:3] == ["", False, why]


async def test_templates_that_are_not_enabled_are_left_out(sim: SimCluster) -> None:
    only = {"enabled_disk_templates": ["sharedfile", "ext"]}
    await sim.run("OP_CLUSTER_SET_PARAMS", **only)
    assert (await diagnosed(sim)).keys() == {"sharedfile", "ssd", "nas"}


async def test_columns_are_checked(sim: SimCluster) -> None:
    error = await sim.refused("OP_STORAGE_DIAGNOSE", output_fields=["colour"])
    assert isinstance(error, BadInput)


async def verified(sim: SimCluster) -> tuple[list[str], list[str]]:
    found = await sim.run("OP_CLUSTER_VERIFY")
    return tuple(
        [f"{one['object']}: {one['message']}" for one in found[kind]]
        for kind in ("errors", "warnings")
    )  # type: ignore[return-value]


@pytest.mark.requirement("S0-16", "S0-82")
async def test_verify_tells_where_a_pool_does_not_work(sim: SimCluster) -> None:
    """Part of S0-16: what becomes of storage later, and who is told."""
    assert not any("pool" in one for told in await verified(sim) for one in told)
    machine = sim.nodes.nodes["node1"].machine
    machine.missing.add("/shared/ssd")
    told = "storage pool ssd: it does not work on node node1: there is no directory"
    errors, warnings = await verified(sim)
    assert not any("storage pool" in one for one in errors)
    assert f"{told} /shared/ssd" in warnings
    machine.missing.clear()
    made = {"name": "d", "pool": "ssd", "size": 64, "group": "default"}
    await sim.run("OP_DISK_ADD", **made)
    await sim.run("OP_DISK_ATTACH", disk="d", instance_name="web")
    machine.missing.add("/shared/ssd")
    errors, _ = await verified(sim)
    assert f"{told} /shared/ssd" in errors
    machine.missing.clear()
    machine.installed = [one for one in machine.installed if one.name != "san"]
    _, warnings = await verified(sim)
    assert (
        "storage pool nas: it does not work on node node1: there is no ExtStorage "
        "provider 'san'"
    ) in warnings


def test_a_programs_many_lines_become_one_sentence() -> None:
    told = f"rbd ls failed (exited with exit code 2){LAST_LINES}\nwarning\n\nno way\n"
    assert _in_a_line(told) == "rbd ls failed (exited with exit code 2): no way"
    assert _in_a_line("there is no file") == "there is no file"


def test_a_need_without_a_problem_is_met() -> None:
    assert Need(kind="program", name="lvs").problem == ""


async def test_a_pool_takes_the_parameters_of_its_provider(sim: SimCluster) -> None:
    rows = await sim.run(
        "OP_STORAGE_DIAGNOSE", output_fields=["pool", "parameters"], names=["nas"]
    )
    ((_, parameters),) = rows
    assert [name for name, _ in parameters] == ["tier", "access", *LIMITED]
