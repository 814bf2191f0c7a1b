# SPDX-License-Identifier: BSD-2-Clause
"""A cluster with logical volumes, Ceph and Gluster, and what changes such disks."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP
from moorage.testing.rbd import POOL
from moorage.testing.stored import GLUSTER_DIR

from .requests import at, on


async def cellar(directory: Path) -> SimCluster:
    """Return a cluster where db is down on node1, with a disk of each kind of storage.

    They are a logical volume, an image of Ceph's and one of Gluster's. shop runs on
    node1 with an image and a file; *loose* is an image that belongs to nobody, *lump* a
    logical volume of node1.
    """
    builder = ClusterBuilder(2)
    given: dict[str, Any] = {
        "volume_group_name": GROUP,
        "gluster_storage_dir": GLUSTER_DIR,
        "diskparams": {"rbd": {"pool": POOL}},
    }
    builder.objects["cluster"] = replace(builder.objects["cluster"], **given)
    cluster = await SimCluster.start(directory, builder)
    fields = {"disks": _STORED, "start": False}
    await cluster.run("OP_INSTANCE_CREATE", **_MADE | {"instance_name": "db"} | fields)
    shop = {"instance_name": "shop", "disks": _SHOP, "start": True}
    await cluster.run("OP_INSTANCE_CREATE", **_MADE | shop)
    for name, new in (
        ("loose", {"disk_template": "rbd"}),
        ("lump", {"disk_template": "plain", "node": "node1"}),
    ):
        await cluster.run("OP_DISK_ADD", name=name, size=64, **new)
    for records in (cluster.nodes.san.volumes, cluster.nodes.san.logical):
        for name in records:
            records[name] = records[name] | {"data": f"written to {name}"}
    return cluster


_STORED: list[dict[str, Any]] = [
    {"size": 64, "dev_type": "plain", "name": "lv"},
    {"size": 64, "dev_type": "rbd", "name": "image"},
    {"size": 64, "dev_type": "gluster", "name": "file"},
]
_SHOP: list[dict[str, Any]] = [
    {"size": 64, "dev_type": "rbd", "name": "goods"},
    {"size": 64, "dev_type": "gluster", "name": "bills"},
]
_MADE: dict[str, Any] = {"pnode": "node1", "disk_template": "plain"}
_SHARED = [
    {"size": 64, "dev_type": "rbd"},
    {"size": 64, "dev_type": "gluster", "access": "userspace"},
]
STORED = (
    on("new", "OP_INSTANCE_CREATE", disks=_SHARED, start=True, **_MADE),
    on("vol", "OP_INSTANCE_CREATE", disks=[{"size": 64}], start=True, **_MADE),
    on("db", "OP_INSTANCE_STARTUP"),
    on("db", "OP_INSTANCE_REMOVE"),
    *(at(one["name"], "OP_DISK_GROW", amount=64) for one in _STORED),
    *(at(one["name"], "OP_DISK_SNAPSHOT", new_name="s") for one in _STORED),
    on("shop", "OP_INSTANCE_MIGRATE", target_node="node2"),
    on("shop", "OP_INSTANCE_FAILOVER", target_node="node2"),
    at("loose", "OP_DISK_ATTACH", "hot attach", instance_name="shop"),
    at("loose", "OP_DISK_ATTACH", "cold attach", instance_name="db"),
    at("lump", "OP_DISK_ATTACH", "hot attach", instance_name="shop"),
    at("goods", "OP_DISK_DETACH", "hot detach"),
    at("lv", "OP_DISK_DETACH", "cold detach"),
    at("bills", "OP_DISK_DETACH", "hot detach"),
    at("goods", "OP_DISK_CONVERT", "convert running", disk_template="plain"),
    at("bills", "OP_DISK_CONVERT", "convert running", disk_template="rbd"),
    at("lv", "OP_DISK_CONVERT", disk_template="gluster"),
    at("loose", "OP_DISK_CONVERT", disk_template="plain", node="node2"),
    at("goods", "OP_DISK_CLONE", "clone running", new_name="copy"),
    at("lump", "OP_DISK_CLONE", new_name="copy", disk_template="rbd"),
)
"""Every kind of request that changes such disks, for the :func:`cellar`."""
