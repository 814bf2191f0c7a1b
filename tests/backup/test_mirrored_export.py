# SPDX-License-Identifier: BSD-2-Clause
"""Exports of mirrored disks: what the node that writes has, running or down."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster

EXPORT = "node2:/sim/export/web/disk0.qcow2"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder())
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="drbd",
        disks=[{"size": 64, "name": "root"}],
        pnode="node2",
        snode="node3",
    )
    cluster.nodes.san.drbd.write("node2", 0, "letter")
    yield cluster
    await cluster.stop()


@pytest.mark.parametrize("running", [True, False], ids=["running", "down"])
async def test_a_mirrored_disk_is_exported_and_comes_back(
    cluster: SimCluster, running: bool
) -> None:
    san = cluster.nodes.san
    if not running:
        await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    before = dict(san.logical)
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web", shutdown=False)
    assert san.files[EXPORT]["data"] == "letter"
    assert dict(san.logical) == before
    assert bool(san.mirrors) is running
    made = {"instance_name": "again", "mode": "import", "src_path": "web"}
    await cluster.run("OP_INSTANCE_CREATE", **made, pnode="node2", snode="node1")
    (disk,) = cluster.config.disks_of(cluster.config.instance("again"))
    assert disk.nodes == ("node2", "node1")
    for node in disk.nodes:
        assert san.logical[f"{node} xenvg/{disk.volume}"]["data"] == "letter"


async def test_while_one_copy_is_away_the_other_one_is_exported(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web")
    assert cluster.nodes.san.files[EXPORT]["data"] == "letter"


async def test_a_copy_that_missed_writes_is_not_exported_for_a_good_one(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await cluster.run("OP_DISK_DETACH", disk="root")
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=False)
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    refused = await cluster.refused("OP_DISK_EXPORT", disk="root")
    assert "the copy on node node3 missed what was written last" in refused.message
