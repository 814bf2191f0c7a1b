# SPDX-License-Identifier: BSD-2-Clause
"""Disks that come and go in one change of an instance: what it says, and its edges."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.model import Disk, pair_of
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.scenarios import harbour

MODIFY = "OP_INSTANCE_SET_PARAMS"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


@pytest.fixture
async def mirrored(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=3))
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="drbd",
        disks=[{"size": 1024, "name": "root"}],
        pnode="node1",
        snode="node2",
    )
    yield cluster
    await cluster.stop()


async def modify(cluster: SimCluster, *mods: list[Any], name: str = "web1") -> Any:
    return await cluster.run(MODIFY, instance_name=name, disks=list(mods))


async def test_each_change_is_told_with_its_slot(cluster: SimCluster) -> None:
    """As Ganeti tells it; a new disk at the end has the slot behind the last one."""
    new = {"size": 32, "mode": "ro"} | {"provider": "san"}
    spare = cluster.config.disk("spare")
    told = await modify(
        cluster,
        ["add", -1, new],
        ["modify", 0, {"name": "boot", "mode": "ro"}],
        ["attach", 1, {"name": "spare"}],
        ["remove", "data1", {}],
    )
    assert [tuple(one) for one in told] == [
        ("disk/2", "add:size=32,mode=ro"),
        ("disk/0", "modify:name=boot,mode=ro"),
        ("disk/1", f"attach:size={spare.size},mode={spare.mode}"),
        ("disk/1", "remove"),
    ]


async def test_scripts_are_told_the_slot_and_the_owner_of_a_new_disk(
    cluster: SimCluster,
) -> None:
    """A computed name has the slot; the note beside the volume has the instance."""
    for slot, index in ((-1, 2), (0, 0)):
        known = set(cluster.nodes.san.volumes)
        await modify(cluster, ["add", slot, {"size": 8} | {"provider": "san"}])
        (volume,) = set(cluster.nodes.san.volumes) - known
        assert volume.endswith(f".disk{index}")
        assert "web1" in str(cluster.nodes.san.volumes[volume])


async def test_a_name_is_taken_where_the_instance_has_it_already(
    mirrored: SimCluster,
) -> None:
    """And free where a disk has it that belongs to nobody."""
    disk = {"disk_template": "plain", "size": 8, "node": "node3"}
    await mirrored.run("OP_DISK_ADD", name="data", **disk)
    add = ["add", -1, {"size": 8, "name": "data"}]
    await modify(mirrored, add, name="web")
    refused = await mirrored.refused(MODIFY, instance_name="web", disks=[add])
    assert refused.message == "instance web has a disk named 'data' already"


async def test_a_mirrored_disk_goes_where_the_others_have_their_copies(
    mirrored: SimCluster,
) -> None:
    await modify(mirrored, ["add", -1, {"size": 64, "name": "two"}], name="web")
    pair = pair_of(mirrored.config.disk("two"))
    assert pair
    assert pair.nodes == ("node1", "node2")
    await mirrored.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    add = ["add", -1, {"size": 64, "name": "three"}]
    refused = await mirrored.refused(MODIFY, instance_name="web", disks=[add])
    assert "node node2 is marked offline: it gets no copy of a new disk" in (
        refused.message
    )
    assert refused.hint == (
        "give the instance another secondary node: "
        "gnt-instance replace-disks -n NODE web"
    )
    assert refused.facts["node"] == "node2"


async def test_an_instance_with_one_node_gets_no_mirrored_disk(
    mirrored: SimCluster,
) -> None:
    alone = {"instance_name": "one", "pnode": "node1", "start": False}
    await mirrored.run(
        "OP_INSTANCE_CREATE", disk_template="plain", disks=[{"size": 8}], **alone
    )
    add = ["add", -1, {"size": 64, "dev_type": "drbd"}]
    refused = await mirrored.refused(MODIFY, instance_name="one", disks=[add])
    assert refused.message == ("instance one has no secondary node for a mirrored disk")
    assert refused.hint == "gnt-disk add -t drbd -n node1:OTHER ..., and attach it"


async def test_a_removed_mirrored_disk_leaves_no_device(mirrored: SimCluster) -> None:
    await modify(mirrored, ["add", -1, {"size": 64, "name": "two"}], name="web")
    await modify(mirrored, ["remove", "two", {}], name="web")
    assert set(mirrored.nodes.san.mirrors) == {"node1 0", "node2 0"}
    assert not mirrored.config.called(Disk, "two")
