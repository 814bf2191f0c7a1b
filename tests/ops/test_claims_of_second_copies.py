# SPDX-License-Identifier: BSD-2-Clause
"""The second copy of a mirrored disk has its room before anything is made."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import NoCapacity, WrongState
from moorage.model import Disk
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return a cluster with two instances whose second copies are on one node."""
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=3))
    for name, node in (("web1", "node1"), ("web2", "node2")):
        new = {"pnode": node, "snode": "node3", "disk_template": "drbd"}
        disk = {"size": 512, "name": f"of-{name}"}
        await cluster.run("OP_INSTANCE_CREATE", instance_name=name, disks=[disk], **new)
    yield cluster
    await cluster.stop()


def with_room(cluster: SimCluster, size: int) -> None:
    """Let the second node have so much room, in MiB, for what comes."""
    group = f"node3 {GROUP}"
    taken = sum(
        one["size"]
        for key, one in cluster.nodes.san.logical.items()
        if key.startswith(group)
    )
    cluster.nodes.san.groups[group] = {"devices": {"/dev/sdb": taken + size}}


def given(name: str) -> dict[str, Any]:
    """Return the request for one more disk of an instance."""
    what = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": name}
    return {**what, "disks": [["add", -1, {"size": 1024}]]}


def grown(name: str) -> dict[str, Any]:
    """Return the request for more of an instance's disk."""
    return {"OP_ID": "OP_DISK_GROW", "disk": f"of-{name}", "amount": 1024}


@pytest.mark.parametrize("request_of", [given, grown])
async def test_the_second_node_must_have_the_room(
    cluster: SimCluster, request_of: Any
) -> None:
    with_room(cluster, 1000)
    made = set(cluster.nodes.san.logical)
    (error,) = await cluster.at_once(request_of("web1"))
    assert isinstance(error, NoCapacity)
    assert error.facts["node"] == "node3"
    assert set(cluster.nodes.san.logical) == made


@pytest.mark.parametrize("request_of", [given, grown])
async def test_two_at_once_do_not_overfill_the_second_node(
    cluster: SimCluster, request_of: Any
) -> None:
    with_room(cluster, 1500)
    (error,) = await cluster.at_once(request_of("web1"), request_of("web2"))
    assert isinstance(error, NoCapacity)
    assert error.facts["node"] == "node3"


async def test_a_second_node_that_is_off_gets_no_new_disk(cluster: SimCluster) -> None:
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    disks = cluster.config.all(Disk)
    (error,) = await cluster.at_once(given("web1"))
    assert isinstance(error, WrongState)
    assert "node3 is marked offline" in error.message
    assert [one.uuid for one in cluster.config.all(Disk)] == [x.uuid for x in disks]
