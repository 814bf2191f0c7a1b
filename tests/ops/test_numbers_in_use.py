# SPDX-License-Identifier: BSD-2-Clause
"""A number of DRBD's that a node uses for something else: that stays as it is."""

from pathlib import Path

from moorage.testing.cluster import ClusterBuilder, SimCluster


async def test_a_foreign_device_under_our_number_stays(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=2))
    san = cluster.nodes.san
    foreign = {"resource": "", "data": "node2 xenvg/theirs", "meta": "node2 xenvg/m"}
    foreign |= {"mine": "", "other": "", "secret": "", "role": "Secondary"}
    san.mirrors["node2 0"] = foreign | {
        "device": True,
        "two": False,
        "size": 64,
        "left": 0,
    }
    refused = await cluster.refused(
        "OP_DISK_ADD", name="d", disk_template="drbd", size=64, node="node1:node2"
    )
    assert "minor 0 of node node2 is in use: it has /dev/xenvg/theirs" in str(refused)
    assert list(san.mirrors) == ["node2 0"]
    assert san.logical == {}
    await cluster.stop()
