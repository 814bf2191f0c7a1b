# SPDX-License-Identifier: BSD-2-Clause
"""A cluster with files and providers' disks, and every kind of request to change it."""

from pathlib import Path
from typing import Any

from moorage.testing.cluster import SimCluster

from .requests import Scenario, at, modified, on

LOST = "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11.ext.disk0"
"""A volume that no disk is in, where somebody put it into the harbour."""
LUN = "/dev/disk/by-id/lun1"
"""A shared block device of the harbour."""


async def harbour(directory: Path) -> SimCluster:
    """Return the cluster that the requests are made for.

    web1 runs on node1 with two disks (``sharedfile`` and ``ext``), web2 on node2
    without any, web3 is down on node3 with one; *spare* and *user* belong to nobody.
    The storage pool *nas* is connected to their node group, *idle* to none; so are the
    networks *lan*, in which web2 has a card, and *dmz*, and not *void*.
    An export of web3 lies on node3. The cluster has the tag *old*.
    """
    cluster = await SimCluster.start(directory)
    san = cluster.nodes.san
    san.devices[LUN] = {"size": 2048, "identity": "wwn-1"}
    for name, provider in (("spare", "san"), ("user", "usersan")):
        new = {"name": name, "disk_template": "ext", "provider": provider}
        await cluster.run("OP_DISK_ADD", size=1024, **new)
    for name, groups in (("nas", ["default"]), ("idle", [])):
        pool: dict[str, Any] = {"pool_name": name, "groups": groups}
        await cluster.run("OP_STORAGE_POOL_ADD", provider="san", **pool)
    for name in ("lan", "dmz", "void"):
        await cluster.run("OP_NETWORK_ADD", network_name=name, **_SUBNET)
    for name in ("lan", "dmz"):
        one = {"network_name": name, "group_name": "default", "conflicts_check": False}
        await cluster.run("OP_NETWORK_CONNECT", network_link="br0", **one)
    for fields in _INSTANCES:
        await cluster.run("OP_INSTANCE_CREATE", **fields)
    for records in (san.volumes, san.files):
        for name in records:
            records[name] = records[name] | {"data": f"written to {name}"}
    await cluster.run("OP_TAGS_SET", kind="cluster", name="", tags=["old"])
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web3")
    await cluster.run("OP_DISK_EXPORT", disk="user", target_node="node3")
    return cluster


_SUBNET = {"network": "198.18.0.0/29", "add_reserved_ips": ["198.18.0.6"]}
_CARD = {"network": "lan", "ip": "pool"}
_INSTANCES: tuple[dict[str, Any], ...] = (
    {
        "instance_name": "web1",
        "pnode": "node1",
        "disk_template": "sharedfile",
        "disks": [
            {"size": 512, "name": "root1"},
            {"size": 256, "name": "data1", "dev_type": "ext", "provider": "san"},
        ],
    },
    {
        "instance_name": "web2",
        "pnode": "node2",
        "disk_template": "diskless",
        "nics": [_CARD],
    },
    {
        "instance_name": "web3",
        "pnode": "node3",
        "disk_template": "ext",
        "disks": [{"size": 256, "name": "root3", "provider": "plainsan"}],
        "start": False,
    },
)

_NEW_DISKS = [
    {"size": 512, "dev_type": "sharedfile"},
    {"size": 256, "dev_type": "ext", "provider": "usersan", "access": "userspace"},
]
_SEVERAL = [
    ["add", "0", {"size": 128, "dev_type": "ext", "provider": "san", "name": "new"}],
    ["remove", "0", {}],
    ["attach", "-1", {"name": "spare"}],
    ["detach", "data1", {}],
    ["modify", "data1", {"mode": "ro"}],
]
_TWO = [["remove", "root1", {}], ["remove", "data1", {}]]


_CERTIFIED = {
    "provider": "san",
    "second_node": "node2",
    "checks": ["setinfo", "both-attached"],
}


def _created(name: str, **fields: Any) -> Scenario:  # noqa: ANN401
    asked = {"pnode": "node2", "disk_template": "ext", "disks": _NEW_DISKS}
    return on("web9", "OP_INSTANCE_CREATE", name, **(asked | fields))


def _pool(pool: str, verb: str, **fields: Any) -> Scenario:  # noqa: ANN401
    op_id = f"OP_STORAGE_POOL_{verb}"
    return Scenario(f"{verb.lower()} pool {pool}", op_id, {"pool_name": pool, **fields})


_POOLS = (
    _pool("new", "ADD", provider="san", groups=["default"], params={"tier": "ssd"}),
    _pool("idle", "CONNECT", groups=["default"]),
    _pool("nas", "DISCONNECT", groups=["default"]),
    _pool("nas", "SET_PARAMS", params={"tier": "hdd"}, volume_name="{short}"),
    _pool("idle", "REMOVE"),
    Scenario(
        "add a disk in a pool", "OP_DISK_ADD", {"name": "d", "pool": "nas", "size": 64}
    ),
    Scenario(
        "cluster with other pools",
        "OP_CLUSTER_SET_PARAMS",
        {"add_pools": [["more", "san"]], "remove_pools": ["idle"]},
    ),
)


def _network(called: str, verb: str, **fields: Any) -> Scenario:  # noqa: ANN401
    op_id = f"OP_NETWORK_{verb}"
    words = {"network_name": called, **fields}
    return Scenario(f"{verb.lower()} network {called}", op_id, words)


_NETWORKS = (
    _network("new", "ADD", **_SUBNET),
    _network("void", "CONNECT", group_name="default", network_link="br1"),
    _network("dmz", "DISCONNECT", group_name="default"),
    _network("lan", "SET_PARAMS", gateway="198.18.0.5"),
    _network("void", "RENAME", new_name="other"),
    _network("void", "REMOVE"),
)
_CARDS = [
    ["modify", "0", {"ip": "198.18.0.4"}],
    ["add", "-1", _CARD],
    ["add", "0", {"link": "br0", "mac": "aa:00:00:00:00:01"}],
]


def _exported(instance: str, name: str, **fields: Any) -> Scenario:  # noqa: ANN401
    return on(instance, "OP_BACKUP_EXPORT", name, **fields)


def _cloned(source: str, node: str) -> Scenario:
    """Return the making of an instance that is elsewhere than the disks it copies."""
    fields = {"mode": "clone", "src_instance": source, "pnode": node}
    return on("web9", "OP_INSTANCE_CREATE", "clone", os_type="tiny", **fields)


def _imported(verb: str, node: str) -> Scenario:
    fields = {"mode": "import", "src_path": "web3", "pnode": node}
    return on("web9", "OP_INSTANCE_CREATE", verb, **fields)


_HOUSEKEEPING = (
    Scenario("rename the cluster", "OP_CLUSTER_RENAME", {"name": "fleet"}),
    Scenario(
        "an address for the master",
        "OP_CLUSTER_SET_PARAMS",
        {"master_ip": "192.0.2.99", "master_netdev": "br0"},
    ),
    Scenario(
        "fewer candidates",
        "OP_CLUSTER_SET_PARAMS",
        {"candidate_pool_size": 1, "max_running_jobs": 5, "mac_prefix": "aa:bb:cc"},
    ),
    Scenario(
        "no candidate any more",
        "OP_NODE_SET_PARAMS",
        {"node_name": "node3", "master_capable": False, "auto_promote": True},
    ),
    Scenario(
        "close a physical volume",
        "OP_NODE_MODIFY_STORAGE",
        {
            "node_name": "node1",
            "storage_type": "lvm-pv",
            "name": "/dev/sdb",
            "changes": {"allocatable": False},
        },
    ),
)
_GROUPS = (
    Scenario("add a group", "OP_GROUP_ADD", {"group_name": "rack2"}),
    Scenario(
        "change the group",
        "OP_GROUP_SET_PARAMS",
        {"group_name": "default", "alloc_policy": "last_resort"},
    ),
)
SCENARIOS = (
    *_POOLS,
    *_HOUSEKEEPING,
    *_GROUPS,
    on("web1", "OP_INSTANCE_GROW_DISK", "grow by its slot", disk="0", amount=64),
    on("web3", "OP_INSTANCE_DEACTIVATE_DISKS", "deactivate the disks"),
    *_NETWORKS,
    _created("create", os_type="tiny"),
    _created("create with cards", disks=[], disk_template="diskless", nics=[_CARD, {}]),
    _created("create stopped", start=False),
    _cloned("web3", "node1"),
    _created("adopt", disks=[{"adopt": LUN, "dev_type": "blockdev"}]),
    Scenario(
        "add a disk",
        "OP_DISK_ADD",
        {"name": "d", "disk_template": "ext", "provider": "san", "size": 64},
    ),
    Scenario(
        "add a file",
        "OP_DISK_ADD",
        {"name": "d", "disk_template": "sharedfile", "size": 64},
    ),
    at("spare", "OP_DISK_ATTACH", "hot attach", instance_name="web1"),
    at("user", "OP_DISK_ATTACH", "front attach", instance_name="web1", index=0),
    at("spare", "OP_DISK_ATTACH", "cold attach", instance_name="web3"),
    at("data1", "OP_DISK_DETACH", "hot detach"),
    at("root3", "OP_DISK_DETACH", "cold detach"),
    at("data1", "OP_DISK_GROW", "grow running", amount=1024),
    at("root1", "OP_DISK_GROW", "grow file", amount=1024),
    at("spare", "OP_DISK_GROW", "grow detached", amount=1024),
    at("root3", "OP_DISK_GROW", "grow down", amount=1024),
    at("spare", "OP_DISK_REMOVE"),
    at("spare", "OP_DISK_FORGET", why="its storage burnt"),
    at("data1", "OP_DISK_SNAPSHOT", "running snapshot", new_name="s"),
    at("root1", "OP_DISK_SNAPSHOT", "file snapshot", new_name="s"),
    at("spare", "OP_DISK_SNAPSHOT", "detached snapshot", new_name="s"),
    at("spare", "OP_DISK_RENAME", new_name="other"),
    at("data1", "OP_DISK_SET_PARAMS", "parameters", params={"tier": "hdd"}),
    Scenario("certify a provider", "OP_EXT_STORAGE_CERTIFY", _CERTIFIED),
    Scenario(
        "reconcile",
        "OP_STORAGE_RECONCILE",
        {"repair": [{"do": "quarantine", "volume": ["ext", "san", LOST]}]},
    ),
    Scenario(
        "adopt a volume",
        "OP_DISK_ADOPT",
        {"volume": LOST, "disk_template": "ext", "provider": "san", "name": "lost"},
    ),
    Scenario("tag", "OP_TAGS_SET", {"kind": "disk", "name": "spare", "tags": ["t"]}),
    Scenario("untag", "OP_TAGS_DEL", {"kind": "cluster", "name": "", "tags": ["old"]}),
    at("spare", "OP_DISK_CONVERT", disk_template="sharedfile"),
    at("data1", "OP_DISK_CONVERT", "convert running", disk_template="sharedfile"),
    at("root3", "OP_DISK_CONVERT", disk_template="ext", provider="usersan"),
    modified(
        "web1",
        "convert all",
        [],
        disk_template="ext",
        ext_params={"provider": "usersan"},
    ),
    at("root1", "OP_DISK_CLONE", "clone running", new_name="copy"),
    at("root3", "OP_DISK_CLONE", new_name="copy", disk_template="sharedfile"),
    on("web1", "OP_INSTANCE_REMOVE"),
    on("web1", "OP_INSTANCE_REMOVE", "remove at any price", ignore_failures=True),
    on("web3", "OP_INSTANCE_REMOVE"),
    on("web1", "OP_INSTANCE_REMOVE", "remove, disks stay,", keep_disks=True),
    on("web1", "OP_INSTANCE_MIGRATE", target_node="node2"),
    on("web2", "OP_INSTANCE_MIGRATE", target_node="node3"),
    on("web1", "OP_INSTANCE_FAILOVER", target_node="node3"),
    on("web3", "OP_INSTANCE_FAILOVER", target_node="node1"),
    on("web1", "OP_INSTANCE_SHUTDOWN"),
    on("web3", "OP_INSTANCE_STARTUP"),
    on("web1", "OP_INSTANCE_REBOOT", "reboot hard"),
    on("web1", "OP_INSTANCE_REBOOT", reboot_type="full"),
    on("web3", "OP_INSTANCE_ACTIVATE_DISKS"),
    on("web1", "OP_INSTANCE_ACTIVATE_DISKS"),
    on("web3", "OP_INSTANCE_RENAME", new_name="web8"),
    on("web3", "OP_INSTANCE_REINSTALL", os_type="tiny"),
    on("web3", "OP_INSTANCE_RECREATE_DISKS"),
    on("web3", "OP_INSTANCE_RECREATE_DISKS", "recreate elsewhere", nodes=["node2"]),
    on("web2", "OP_INSTANCE_SHUTDOWN", "user's own", admin_state_source="user"),
    on("web3", "OP_INSTANCE_SET_PARAMS", "new primary of", pnode="node2"),
    on("web1", "OP_INSTANCE_SET_PARAMS", "less", runtime_mem=100, force=True),
    Scenario(
        "settings of an OS",
        "OP_CLUSTER_SET_PARAMS",
        {
            "osparams": {"tiny": {"a": "b"}},  # it has none, and is told to take it
            "hidden_os": [["add", "tiny"]],
            "force": True,
        },
    ),
    _exported("web1", "export over snapshots", target_node="node2"),
    _exported("web1", "export while it runs", shutdown=False),
    _exported("web1", "export elsewhere", shutdown=False, target_node="node2"),
    _imported("import", "node3"),
    _imported("import elsewhere", "node1"),
    on("web3", "OP_BACKUP_REMOVE", "remove the export of"),
    _exported("web1", "export and remove", remove_instance=True),
    at("spare", "OP_DISK_EXPORT", "export", target_node="node2"),
    Scenario("import a disk", "OP_DISK_IMPORT", {"name": "d", "src_path": "disk+user"}),
    Scenario(
        "import a disk elsewhere",
        "OP_DISK_IMPORT",
        {"name": "d", "src_path": "disk+user", "node": "node1"},
    ),
    modified("web1", "several changes", _SEVERAL),
    modified("web2", "cards", [], nics=_CARDS),
    modified("web2", "no cards", [], nics=[["remove", "0", {}]]),
    modified("web3", "cold cards", [], nics=[["add", "-1", _CARD]]),
    modified("web1", "two removed", _TWO),
    modified("web1", "two forgotten", _TWO, keep_disks=True),
    modified("web3", "cold changes", [["remove", "0", {}], _SEVERAL[0]]),
)
"""Every kind of request that changes something."""
