# SPDX-License-Identifier: BSD-2-Clause
"""A running instance with one mirrored disk."""

from pathlib import Path

from moorage.testing.cluster import ClusterBuilder, SimCluster


async def mirrored(directory: Path, name: str, data: str) -> SimCluster:
    """Return a cluster in which *web* runs on node2, with its second copy on node3.

    Parameters
    ----------
    name
        Of its disk.
    data
        What both copies have.
    """
    cluster = await SimCluster.start(directory, ClusterBuilder(nodes=4))
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="drbd",
        disks=[{"size": 64, "name": name}],
        pnode="node2",
        snode="node3",
    )
    cluster.nodes.san.drbd.write("node2", 0, data)
    return cluster
