# SPDX-License-Identifier: BSD-2-Clause
"""Conversions of all disks of instances, asked for together, take nothing twice."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.errors import NoCapacity
from moorage.model import Disk, pair_of
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return a cluster with two instances that are down, with a file each."""
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=3))
    for name, node in (("web1", "node1"), ("web2", "node2")):
        new = {"pnode": node, "disk_template": "sharedfile", "disks": [{"size": 512}]}
        await cluster.run("OP_INSTANCE_CREATE", instance_name=name, start=False, **new)
    yield cluster
    await cluster.stop()


def mirrored(name: str, node: str) -> dict[str, str]:
    """Return the request that mirrors the disks of an instance to a node."""
    what = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": name}
    return {**what, "disk_template": "drbd", "remote_node": node}


async def test_numbers_of_mirrors_are_claimed(cluster: SimCluster) -> None:
    both = mirrored("web1", "node3"), mirrored("web2", "node3")
    assert await cluster.at_once(*both) == []
    pairs = [pair for pair in map(pair_of, cluster.config.all(Disk)) if pair]
    taken = [one for pair in pairs for one in pair.reserved()]
    assert len(pairs) == 2
    assert len(set(taken)) == len(taken)


async def test_the_second_node_must_have_the_room(cluster: SimCluster) -> None:
    small = {"devices": {"/dev/sdb": 512}}
    cluster.nodes.san.groups[f"node3 {GROUP}"] = small
    error = await cluster.refused(**_fields(mirrored("web1", "node3")))
    assert isinstance(error, NoCapacity)
    assert error.facts["node"] == "node3"
    assert all(pair_of(disk) is None for disk in cluster.config.all(Disk))


def _fields(opcode: dict[str, str]) -> dict[str, str]:
    return {"op_id" if key == "OP_ID" else key: it for key, it in opcode.items()}
