# SPDX-License-Identifier: BSD-2-Clause
"""Adopted volumes that get a second copy, and lose it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder, SimCluster

OLD = "node1 xenvg/legacy"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=4))
    old = {"size": 512, "data": "old", "tags": "", "origin": "", "devices": []}
    cluster.nodes.san.logical[OLD] = old
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="plain",
        disks=[{"adopt": "legacy", "name": "root"}],
        pnode="node1",
        start=False,
    )
    yield cluster
    await cluster.stop()


def without_metadata(_node: str, command: Command) -> bool:
    return "create-md" in command.argv


async def doubled(cluster: SimCluster) -> tuple[str, str]:
    """Give the disk a second copy on node2; return status and error of the job."""
    change = {"disk_template": "drbd", "remote_node": "node2"}
    number = await cluster.submit(
        "OP_INSTANCE_SET_PARAMS", instance_name="web", **change
    )
    job = await cluster.finished(number)
    return job.status, str(job.ops[0].error)


async def test_a_second_copy_that_is_taken_back_leaves_nothing(
    cluster: SimCluster,
) -> None:
    cluster.nodes.nodes["node1"].machine.refuse = without_metadata
    assert (await doubled(cluster))[0] == "error"
    assert sorted(cluster.nodes.san.logical) == [OLD]
    assert cluster.nodes.san.logical[OLD]["data"] == "old"


@pytest.mark.parametrize("name", ["node2 xenvg/legacy", "node1 xenvg/legacy_meta"])
async def test_a_volume_of_that_name_is_not_taken_for_a_copy(
    cluster: SimCluster, name: str
) -> None:
    size = 128 if name.endswith("meta") else 512
    theirs = {"size": size, "data": "theirs", "tags": "", "origin": "", "devices": []}
    cluster.nodes.san.logical[name] = dict(theirs)
    status, error = await doubled(cluster)
    assert status == "error"
    assert f"has a volume {name.split()[1]} already" in error
    assert cluster.nodes.san.logical[name] == theirs
    assert sorted(cluster.nodes.san.logical) == sorted([OLD, name])


async def test_a_move_says_which_adopted_volume_it_removes(cluster: SimCluster) -> None:
    number = await cluster.submit(
        "OP_INSTANCE_MOVE", instance_name="web", target_node="node3"
    )
    job = await cluster.finished(number)
    assert job.status == "success"
    said = [str(entry) for entry in job.ops[0].log]
    assert any("xenvg/legacy" in one and "removed when" in one for one in said)


async def test_who_lets_a_copy_go_is_told_that_the_volume_was_adopted(
    cluster: SimCluster,
) -> None:
    """After a failover it is the adopted volume itself that is the other copy."""
    assert (await doubled(cluster))[0] == "success"
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web")
    number = await cluster.submit(
        "OP_INSTANCE_SET_PARAMS", instance_name="web", disk_template="plain"
    )
    job = await cluster.finished(number)
    assert job.status == "success"
    said = " ".join(str(entry) for entry in job.ops[0].log)
    assert "volume xenvg/legacy of disk root was adopted" in said
    assert "its copy on node node1 is removed, the one on node2 stays" in said
