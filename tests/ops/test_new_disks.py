# SPDX-License-Identifier: BSD-2-Clause
"""What a new disk has, and which nodes make it where the request leaves that open."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pooling import pooled, town

from moorage.errors import BadInput, Exists, WrongState
from moorage.model import pair_of
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP

MIRRORED = {"disk_template": "drbd", "size": 64}
SHARED = {"disk_template": "ext", "provider": "san", "size": 64}


async def started(directory: Path, builder: ClusterBuilder) -> SimCluster:
    return await SimCluster.start(directory, builder)


async def add(sim: SimCluster, name: str = "new", **fields: Any) -> Any:
    await sim.run("OP_DISK_ADD", name=name, **fields)
    return sim.config.disk(name)


async def copies(sim: SimCluster, name: str = "new", **fields: Any) -> list[str]:
    """Make a mirrored disk; return the nodes of its copies, the first one first."""
    pair = pair_of(await add(sim, name, **MIRRORED, **fields))
    assert pair
    return [*pair.nodes]


async def test_one_that_stays_on_a_node_needs_a_name(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(2))
    error = await sim.refused("OP_DISK_ADD", disk_template="plain", size=64)
    assert isinstance(error, BadInput)
    assert error.message == "a disk of template 'plain' stays on one node"
    assert error.hint == "say which: -n NODE"


@pytest.mark.parametrize("node", ["node2:", "node2:node1"])
async def test_one_without_copies_has_one_node(tmp_path: Path, node: str) -> None:
    sim = await started(tmp_path, ClusterBuilder(2))
    fields = {"disk_template": "plain", "size": 64, "node": node}
    error = await sim.refused("OP_DISK_ADD", **fields)
    assert isinstance(error, BadInput)
    assert error.message == "a disk of template 'plain' has no second copy"
    assert error.hint == "-n node2"


async def test_a_mirrored_one_needs_two_nodes_of_a_group(tmp_path: Path) -> None:
    builder = ClusterBuilder(1).node("far1", "far").node("far2", "far")
    sim = await started(tmp_path, builder)
    for fields in ({"node": "node1"}, {"group": "default"}):
        error = await sim.refused("OP_DISK_ADD", **MIRRORED, **fields)
        assert isinstance(error, WrongState)
        assert error.message == (
            "only node node1 of its group could have a copy: a mirrored disk needs two"
        )
        assert error.hint == "gnt-node list"


async def test_copies_are_put_where_fewest_disks_are(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(4))
    assert await copies(sim, "a", node="node1:node2") == ["node1", "node2"]
    assert await copies(sim, "b") == ["node3", "node4"]
    assert await copies(sim, "c", node="node4") == ["node4", "node1"]
    assert await copies(sim, "d") == ["node2", "node3"]


async def test_copies_are_put_where_there_is_room(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(3))
    sim.nodes.san.groups[f"node1 {GROUP}"] = {"devices": {"/dev/sda": 32}}
    assert await copies(sim) == ["node2", "node3"]
    assert await copies(sim, "other", node="node3") == ["node3", "node2"]


async def test_drained_nodes_get_no_copy_that_nobody_asked_for(tmp_path: Path) -> None:
    builder = ClusterBuilder(1).node("node2", drained=True).node("node3")
    sim = await started(tmp_path, builder.node("node4", offline=True))
    assert await copies(sim, "a") == ["node1", "node3"]
    assert await copies(sim, "b", node="node3") == ["node3", "node1"]
    assert await copies(sim, "c", node="node1:node2") == ["node1", "node2"]


async def test_drained_nodes_make_one_where_there_are_no_others(tmp_path: Path) -> None:
    builder = ClusterBuilder(1).node("far1", "far", drained=True)
    sim = await started(tmp_path, builder.node("far2", "far", offline=True))
    assert (await add(sim, **SHARED, group="far")).last_node == "far1"


async def test_a_node_makes_it_that_is_in_the_group_that_is_named(
    tmp_path: Path,
) -> None:
    sim = await started(tmp_path, ClusterBuilder(1).node("far1", "far"))
    assert (await add(sim, **SHARED, group="far")).group == "far"
    wrong = {"node": "node1", "group": "far"}
    error = await sim.refused("OP_DISK_ADD", **SHARED, **wrong)
    assert error.message == "node node1 is in node group default, not in far"


async def test_copies_are_put_where_the_volume_group_is(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(4))
    for node in ("node2", "node4"):
        sim.nodes.san.groups[f"{node} fast"] = {"devices": {"/dev/sdb": 1024}}
    wanted = {"params": {"vg": "fast", "metavg": "fast"}}
    assert await copies(sim, **wanted) == ["node2", "node4"]


async def test_where_no_node_has_room_the_refusal_says_so(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(2))
    for node in ("node1", "node2"):
        sim.nodes.san.groups[f"{node} {GROUP}"] = {"devices": {"/dev/sda": 32}}
    error = await sim.refused("OP_DISK_ADD", name="new", **MIRRORED)
    assert error.message == (
        "node node1 has no room for disk new: unit drbd8/xenvg (asked 192 MiB, "
        "free 32 MiB)"
    )
    assert await copies(sim, ignore_capacity=True) == ["node1", "node2"]


async def test_only_nodes_that_are_named_are_asked_and_held(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(4))
    held: set[str] = set()

    async def look(_name: str) -> None:
        rows = sim.engine.locks.rows()
        held.update(row["name"] for row in rows if row["name"].startswith("node/"))

    sim.extra_point = look
    for fields, nodes in (
        ({**MIRRORED, "node": "node2:node3"}, {"node2", "node3"}),
        ({"disk_template": "plain", "size": 64, "node": "node3"}, {"node3"}),
    ):
        held.clear()
        sim.nodes.calls.clear()
        await sim.run("OP_DISK_ADD", **fields)
        assert {node for node, _ in sim.nodes.calls} == nodes
        assert held == {f"node/{node}" for node in nodes}


async def test_both_nodes_that_are_named_are_up(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(2).node("node3", offline=True))
    for node in ("node1:node3", "node3:node1"):
        error = await sim.refused("OP_DISK_ADD", **MIRRORED, node=node)
        assert "node3 is marked offline" in error.message


async def test_of_several_groups_with_its_pool_one_is_named(tmp_path: Path) -> None:
    sim = await town(tmp_path)
    await pooled(sim, groups=["default", "far"])
    error = await sim.refused("OP_DISK_ADD", pool="nas1", size=64)
    assert error.message == "there are several node groups: default, far"
    assert (await add(sim, pool="nas1", size=64, group="far")).group == "far"


async def test_what_is_asked_of_a_disk_is_what_it_has(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(2))
    asked = {"mode": "ro", "tags": ("web", "fast")}
    disk = await add(sim, **SHARED, **asked, access="userspace")
    assert (disk.mode, disk.tags, disk.size) == ("ro", ("web", "fast"), 64)
    assert disk.params == {"provider": "san", "access": "userspace"}
    strange = {"params": {"colour": "red"}}
    error = await sim.refused("OP_DISK_ADD", **SHARED, **strange)
    assert "has no parameter 'colour'" in error.message
    other = await add(sim, "other", **SHARED, **strange, force_params=True)
    assert other.params["colour"] == "red"


async def test_a_volume_is_noted_as_its_disks(tmp_path: Path) -> None:
    """Who looks at the storage reads there what has it."""
    sim = await started(tmp_path, ClusterBuilder(2))
    disk = await add(sim, **SHARED)
    assert sim.nodes.san.volumes[disk.volume]["note"] == "disk+new"


async def test_a_pair_that_is_wanted_takes_its_numbers_at_once(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(2))
    opcodes = [{"OP_ID": "OP_DISK_ADD", "name": name, **MIRRORED} for name in "ab"]
    assert await sim.at_once(*opcodes) == []
    pairs = [pair_of(sim.config.disk(name)) for name in "ab"]
    numbers = [number for pair in pairs if pair for number in pair.reserved()]
    assert len(numbers) == len(set(numbers)) == 6


async def test_one_is_made_under_no_name_that_another_has(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(1))
    fields = {"disk_template": "plain", "size": 64, "node": "node1"}
    await add(sim, **fields)
    error = await sim.refused("OP_DISK_ADD", name="new", **fields)
    assert isinstance(error, Exists)
    assert error.facts["name"] == "new"


async def test_each_node_of_a_mirrored_one_has_its_volume_group(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(2))
    sim.nodes.san.groups["node1 slow"] = {"devices": {"/dev/sdb": 512}}
    fields = {**MIRRORED, "params": {"vg": "slow"}, "ignore_capacity": True}
    error = await sim.refused("OP_DISK_ADD", node="node1:node2", **fields)
    assert "node2" in error.message
    assert "slow" in error.message


async def test_two_are_made_on_a_node_side_by_side(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(1))
    begun: list[str] = []
    both = asyncio.Event()

    async def point(name: str) -> None:
        if name.startswith("before create disk"):
            begun.append(name)
            if len(begun) == 2:
                both.set()
            await asyncio.wait_for(both.wait(), 60)

    sim.extra_point = point
    made = [await sim.submit("OP_DISK_ADD", name=name, **SHARED) for name in "ab"]
    for number in made:
        assert (await sim.finished(number)).status == "success"
    await sim.stop()


async def test_who_wants_a_name_that_is_being_given_waits(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(1))
    fields = {"disk_template": "plain", "size": 64, "node": "node1", "name": "new"}
    one = {"OP_ID": "OP_DISK_ADD", **fields}
    (error,) = await sim.at_once(one, one)
    assert isinstance(error, Exists)  # and nothing was made that is taken back
    await sim.stop()


async def test_one_without_a_name_is_told_as_such(tmp_path: Path) -> None:
    sim = await started(tmp_path, ClusterBuilder(1))
    fields = {"disk_template": "plain", "size": 1 << 30, "node": "node1"}
    error = await sim.refused("OP_DISK_ADD", **fields)
    assert "disk without a name" in error.message
