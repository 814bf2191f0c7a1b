# SPDX-License-Identifier: BSD-2-Clause
"""Node groups as queries show them."""

from typing import Any

from moorage.model import Instance, NodeGroup, nice
from moorage.model.ipolicy import group_policy

from . import defaults
from .field import number, other, parameters, text
from .objects import resource
from .snapshot import Snapshot


def _nodes(snapshot: Snapshot, group: NodeGroup) -> list[str]:
    return [node.name for node in snapshot.config.nodes_in(group)]


def _instances(snapshot: Snapshot, group: NodeGroup) -> list[Instance]:
    config = snapshot.config
    return [one for node in config.nodes_in(group) for one in config.instances_on(node)]


def _instance_count(snapshot: Snapshot, group: NodeGroup) -> int:
    config = snapshot.config
    members = config.members.get(group.uuid, ())
    return sum(len(config.residents.get(node, ())) for node in members)


def _instance_names(snapshot: Snapshot, group: NodeGroup) -> list[str]:
    return sorted((one.name for one in _instances(snapshot, group)), key=nice)


def _diskparams(snapshot: Snapshot, group: NodeGroup) -> dict[str, Any]:
    filled = snapshot.config.cluster.diskparams
    names = filled.keys() | group.diskparams.keys()
    own = group.diskparams
    return {name: filled.get(name, {}) | own.get(name, {}) for name in sorted(names)}


def _ndparams(snapshot: Snapshot, group: NodeGroup) -> dict[str, Any]:
    return defaults.node({**snapshot.config.cluster.ndparams, **group.ndparams})


GROUP = resource(
    "group",
    NodeGroup,
    fields=(
        text("name", "Group", "Name"),
        text("alloc_policy", "AllocPolicy", "Whether new instances go there"),
        other("ndparams", "NDParams", "Parameters of its nodes", _ndparams),
        other("custom_ndparams", "CustomNDParams", "Its own", "ndparams"),
        other("diskparams", "DiskParameters", "Of its disks", _diskparams),
        other("custom_diskparams", "CustomDiskParameters", "Its own", "diskparams"),
        other(
            "ipolicy",
            "InstancePolicy",
            "Limits of its instances",
            lambda s, g: group_policy(s.config.cluster, g),
        ),
        other("custom_ipolicy", "CustomInstancePolicy", "Its own", "ipolicy"),
        number(
            "node_cnt",
            "Nodes",
            "How many nodes",
            lambda s, g: len(s.config.members.get(g.uuid, ())),
        ),
        other("node_list", "NodeList", "Names of its nodes", _nodes),
        number("pinst_cnt", "Instances", "How many", _instance_count),
        other("pinst_list", "InstanceList", "Their names", _instance_names),
    ),
    families=(parameters("ndp", defaults.NDP, "Node parameter", _ndparams),),
)
