# SPDX-License-Identifier: BSD-2-Clause
"""No other operation makes a copy that missed writes the first one, either."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mirrored import mirrored

from moorage.testing.cluster import SimCluster

OLD, NEW = "old", "new"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Instance *web* runs on node2, with its second copy on node3; both have `OLD`."""
    cluster = await mirrored(tmp_path, "root", OLD)
    yield cluster
    await cluster.stop()


async def mark(cluster: SimCluster, node: str, *, offline: bool) -> None:
    await cluster.run("OP_NODE_SET_PARAMS", node_name=node, offline=offline)


async def lost(cluster: SimCluster, node: str) -> None:
    cluster.nodes.nodes[node].lose_power()
    await mark(cluster, node, offline=True)


async def back(cluster: SimCluster, node: str) -> None:
    cluster.nodes.nodes[node].boot()
    await mark(cluster, node, offline=False)


async def on_web(cluster: SimCluster, verb: str, **more: Any) -> Any:
    return await cluster.run(f"OP_INSTANCE_{verb}", instance_name="web", **more)


async def unnoticed(cluster: SimCluster) -> None:
    """Let node3 miss a write that nobody looks at, and node2 go."""
    cluster.nodes.nodes["node3"].lose_power()
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await lost(cluster, "node2")
    cluster.nodes.nodes["node3"].boot()


async def missed(cluster: SimCluster) -> None:
    """Let the guest write without node3, and go down; node3 comes back."""
    await on_web(cluster, "SHUTDOWN")
    await lost(cluster, "node3")
    await on_web(cluster, "STARTUP")
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await on_web(cluster, "SHUTDOWN")
    await back(cluster, "node3")


async def beside(cluster: SimCluster) -> None:
    """Make an instance on node3 that has no disk."""
    new = {"disk_template": "diskless", "disks": [], "pnode": "node3", "start": False}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="other", **new)


async def given(cluster: SimCluster) -> None:
    """Check that the instance on node3 does not get the disk."""
    refused = await cluster.refused(
        "OP_DISK_ATTACH", disk="root", instance_name="other"
    )
    assert "missed what node node2 wrote without it" in refused.message


async def test_a_disk_taken_from_an_instance_whose_node_is_lost(
    cluster: SimCluster,
) -> None:
    await beside(cluster)
    await unnoticed(cluster)
    await cluster.run("OP_DISK_DETACH", disk="root")
    await given(cluster)


async def test_a_disk_that_was_equal_is_taken_along(cluster: SimCluster) -> None:
    await beside(cluster)
    await lost(cluster, "node2")
    await cluster.run("OP_DISK_DETACH", disk="root")
    await cluster.run("OP_DISK_ATTACH", disk="root", instance_name="other")


async def test_a_disk_that_is_kept_of_an_instance_on_a_lost_node(
    cluster: SimCluster,
) -> None:
    await beside(cluster)
    await unnoticed(cluster)
    await on_web(cluster, "REMOVE", keep_disks=True, ignore_failures=True)
    await given(cluster)


async def test_a_disk_that_is_kept_of_an_instance_that_ran_alone(
    cluster: SimCluster,
) -> None:
    await beside(cluster)
    cluster.nodes.nodes["node3"].lose_power()
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await mark(cluster, "node3", offline=True)
    await on_web(cluster, "REMOVE", keep_disks=True)
    await back(cluster, "node3")
    await lost(cluster, "node2")
    await given(cluster)


async def test_an_old_copy_does_not_become_the_only_one(cluster: SimCluster) -> None:
    await missed(cluster)
    await cluster.run("OP_DISK_DETACH", disk="root")
    await beside(cluster)
    await cluster.run("OP_DISK_ATTACH", disk="root", instance_name="other")
    await lost(cluster, "node2")
    refused = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS", instance_name="other", disk_template="plain"
    )
    assert "missed what node node2 wrote without it" in refused.message


async def test_an_old_copy_is_not_copied_to_the_first_node(cluster: SimCluster) -> None:
    await missed(cluster)
    san = cluster.nodes.san
    volume = cluster.config.disk("root").volume
    del san.logical[f"node2 xenvg/{volume}"]
    refused = await cluster.refused(
        "OP_INSTANCE_REPLACE_DISKS", instance_name="web", mode="replace_on_primary"
    )
    assert "missed what node node2 wrote without it" in refused.message


@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_INSTANCE_SET_PARAMS", {"disk_template": "sharedfile"}),
        ("OP_BACKUP_EXPORT", {}),
    ],
)
async def test_an_old_copy_is_not_taken_for_the_data(
    cluster: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    """Its instance is down, and the node of the other copy is off."""
    await missed(cluster)
    await cluster.run("OP_DISK_DETACH", disk="root")
    await beside(cluster)
    await cluster.run("OP_DISK_ATTACH", disk="root", instance_name="other")
    await lost(cluster, "node2")
    before = cluster.config
    refused = await cluster.refused(op_id, instance_name="other", **fields)
    assert "missed what node node2 wrote without it" in refused.message
    assert cluster.config.disk("root") == before.disk("root")
    await back(cluster, "node2")
    await cluster.run(op_id, instance_name="other", **fields)
