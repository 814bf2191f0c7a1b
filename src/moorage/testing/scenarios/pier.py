# SPDX-License-Identifier: BSD-2-Clause
"""A cluster with mirrored disks, and every kind of request that changes one."""

from pathlib import Path
from typing import Any

from moorage.testing.cluster import ClusterBuilder, SimCluster

from .requests import Scenario, at, modified, on


async def pier(directory: Path) -> SimCluster:
    """Return a cluster of four nodes with mirrored disks.

    web1 runs on node1 with two of them (*root1*, *data1*), and its second copies are on
    node2; web2 is down on node2, and web3 has a disk with one copy there. *spare* is
    mirrored on node1 and node2, and belongs to nobody. The group *rack2* has node5
    alone, *rack3* nobody.
    """
    builder = ClusterBuilder(nodes=4).node("node5", "rack2")
    cluster = await SimCluster.start(directory, builder)
    await cluster.run("OP_GROUP_ADD", group_name="rack3")
    for fields in _MIRRORED:
        await cluster.run("OP_INSTANCE_CREATE", **fields)
    new = {"name": "spare", "disk_template": "drbd", "size": 64}
    await cluster.run("OP_DISK_ADD", node="node2:node1", **new)
    for name, one in cluster.nodes.san.logical.items():
        cluster.nodes.san.logical[name] = one | {"data": name.partition(" ")[2]}
    return cluster


_MIRRORED: tuple[dict[str, Any], ...] = (
    {
        "instance_name": "web1",
        "pnode": "node1",
        "snode": "node2",
        "disk_template": "drbd",
        "disks": [{"size": 64, "name": "root1"}, {"size": 32, "name": "data1"}],
    },
    {
        "instance_name": "web2",
        "pnode": "node2",
        "snode": "node3",
        "disk_template": "drbd",
        "disks": [{"size": 64, "name": "root2"}],
        "start": False,
    },
    {
        "instance_name": "web3",
        "pnode": "node2",
        "disk_template": "plain",
        "disks": [{"size": 64, "name": "root3"}],
        "start": False,
    },
)
_PAIR = [{"size": 64, "name": "a"}, {"size": 32, "name": "b"}]
_NEW_NODE = {"mode": "replace_new_secondary", "remote_node": "node4"}

MIRRORS = (
    Scenario("remove a node", "OP_NODE_REMOVE", {"node_name": "node4"}),
    Scenario(
        "put a node into the group",
        "OP_GROUP_ASSIGN_NODES",
        {"group_name": "default", "nodes": ["node5"]},
    ),
    Scenario("remove a group", "OP_GROUP_REMOVE", {"group_name": "rack3"}),
    on(
        "web9",
        "OP_INSTANCE_CREATE",
        pnode="node2",
        snode="node4",
        disk_template="drbd",
        disks=_PAIR,
    ),
    Scenario(
        "add a disk",
        "OP_DISK_ADD",
        {"name": "d", "disk_template": "drbd", "size": 64, "node": "node3:node1"},
    ),
    on("web1", "OP_INSTANCE_MIGRATE"),
    on("web1", "OP_INSTANCE_FAILOVER"),
    on("web1", "OP_INSTANCE_SHUTDOWN"),
    on("web2", "OP_INSTANCE_STARTUP"),
    on("web1", "OP_INSTANCE_REMOVE"),
    on("web2", "OP_INSTANCE_RECREATE_DISKS"),
    on("web2", "OP_INSTANCE_RECREATE_DISKS", "remake", nodes=["node4", "node1"]),
    on("web1", "OP_INSTANCE_REPLACE_DISKS", "new secondary", **_NEW_NODE),
    on("web2", "OP_INSTANCE_REPLACE_DISKS", "new secondary", **_NEW_NODE),
    on("web1", "OP_INSTANCE_REPLACE_DISKS", "renew", mode="replace_on_secondary"),
    on("web1", "OP_INSTANCE_REPLACE_DISKS", "renew first", mode="replace_on_primary"),
    on("web2", "OP_INSTANCE_REPLACE_DISKS", "renew", mode="replace_on_secondary"),
    modified("web2", "halve", [], disk_template="plain"),
    modified("web3", "double", [], disk_template="drbd", remote_node="node1"),
    modified("web1", "new disk", [["add", "-1", {"size": 32, "dev_type": "drbd"}]]),
    at("root1", "OP_DISK_GROW", amount=32),
    at("root2", "OP_DISK_GROW", amount=32),
    at("spare", "OP_DISK_ATTACH", instance_name="web1"),
    at("data1", "OP_DISK_DETACH"),
    at("spare", "OP_DISK_REMOVE"),
)
"""Every kind of request that changes mirrored disks, for the :func:`pier`."""
