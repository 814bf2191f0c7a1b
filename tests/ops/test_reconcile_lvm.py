# SPDX-License-Identifier: BSD-2-Clause
"""Volume groups against the configuration: what is one node's alone, and mirrors."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.testing.cluster import ClusterBuilder, SimCluster

OURS = "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11.disk0"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return a cluster with a plain disk on node2, and a mirrored one on 1 and 2."""
    builder = ClusterBuilder()
    settings = builder.objects["cluster"]
    builder.objects["cluster"] = replace(settings, volume_group_name="xenvg")
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    for name in ("p1", "p2"):
        await cluster.run(
            "OP_DISK_ADD", name=name, disk_template="plain", size=64, node="node2"
        )
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web1",
        disk_template="drbd",
        disks=[{"size": 64, "name": "m1"}],
        pnode="node1",
        snode="node2",
        start=False,
    )
    yield cluster
    await cluster.stop()


async def looked(cluster: SimCluster, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await cluster.run("OP_STORAGE_RECONCILE", **more)
    return found


async def test_both_copies_of_a_mirror_are_its_disks(cluster: SimCluster) -> None:
    found = await looked(cluster)
    assert found["counts"] == {"referenced": 6, "missing": 0}
    assert (found["plan"], found["doubts"]) == ([], [])


async def test_a_logical_volume_belongs_to_its_node(cluster: SimCluster) -> None:
    logical = cluster.nodes.san.logical
    volume = cluster.config.disk("p1").volume
    logical[f"node3 xenvg/{OURS}"] = dict(logical[f"node2 xenvg/{volume}"])
    logical["node3 xenvg/root"] = dict(logical[f"node2 xenvg/{volume}"])
    found = await looked(cluster)
    assert {one["volume"]: one["state"] for one in found["volumes"]} == {
        f"xenvg/{OURS}": "forgotten",
        "xenvg/root": "unknown",
    }
    await looked(cluster, repair=found["plan"])
    (new,) = [disk for disk in cluster.config.detached() if disk.quarantine]
    assert (new.dev_type, new.logical_id) == ("plain", ("xenvg", OURS))
    assert (new.nodes, new.size) == (("node3",), 64)


@pytest.mark.parametrize(("name", "node"), [("p1", "node2"), ("m1", "node2")])
async def test_a_lost_volume_is_missed_on_its_node(
    cluster: SimCluster, name: str, node: str
) -> None:
    disk, logical = cluster.config.disk(name), cluster.nodes.san.logical
    del logical[f"{node} xenvg/{disk.volume}"]
    found = await looked(cluster)
    (lost,) = found["missing"]
    assert lost["name"] == name
    cluster.nodes.nodes[node].lose_power()
    assert (await looked(cluster))["missing"] == []  # nobody looked there
