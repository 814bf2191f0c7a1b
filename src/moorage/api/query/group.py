# SPDX-License-Identifier: BSD-2-Clause
"""Node groups as queries show them."""

from typing import Any

from moorage.model import Instance, NodeGroup, nice
from moorage.model.ipolicy import group_policy
from moorage.ops.ndparams import NAMES

from .field import COMMON, Family, Field, Resource, attribute
from .objects import absent, by_name, every, keys
from .snapshot import Snapshot


def _nodes(scene: Snapshot, group: NodeGroup) -> list[str]:
    return [node.name for node in scene.config.nodes_in(group)]


def _instances(scene: Snapshot, group: NodeGroup) -> list[Instance]:
    config = scene.config
    return [one for node in config.nodes_in(group) for one in config.instances_on(node)]


def _instance_count(scene: Snapshot, group: NodeGroup) -> int:
    config = scene.config
    members = config.members.get(group.uuid, ())
    return sum(len(config.residents.get(node, ())) for node in members)


def _instance_names(scene: Snapshot, group: NodeGroup) -> list[str]:
    return sorted((one.name for one in _instances(scene, group)), key=nice)


def _diskparams(scene: Snapshot, group: NodeGroup) -> dict[str, Any]:
    filled = scene.config.cluster.diskparams
    names = filled.keys() | group.diskparams.keys()
    own = group.diskparams
    return {name: filled.get(name, {}) | own.get(name, {}) for name in sorted(names)}


def _ndparams(scene: Snapshot, group: NodeGroup) -> dict[str, Any]:
    return {**scene.config.cluster.ndparams, **group.ndparams}


def _parameter(tail: str) -> Field:
    name = f"ndp/{tail}"
    get = lambda scene, group: _ndparams(scene, group).get(tail)  # noqa: E731
    return Field(name, name, "other", f"Node parameter {tail}", get)


GROUP = Resource(
    name="group",
    fields=(
        attribute("name", "Group", "text", "Name"),
        attribute(
            "alloc_policy", "AllocPolicy", "text", "Whether new instances go there"
        ),
        Field("ndparams", "NDParams", "other", "Parameters of its nodes", _ndparams),
        attribute("custom_ndparams", "CustomNDParams", "other", "Its own", "ndparams"),
        Field("diskparams", "DiskParameters", "other", "Of its disks", _diskparams),
        attribute(
            "custom_diskparams",
            "CustomDiskParameters",
            "other",
            "Its own",
            "diskparams",
        ),
        Field(
            "ipolicy",
            "InstancePolicy",
            "other",
            "Limits of its instances",
            lambda s, g: group_policy(s.config.cluster, g),
        ),
        attribute(
            "custom_ipolicy", "CustomInstancePolicy", "other", "Its own", "ipolicy"
        ),
        Field(
            "node_cnt",
            "Nodes",
            "number",
            "How many nodes",
            lambda s, g: len(s.config.members.get(g.uuid, ())),
        ),
        Field("node_list", "NodeList", "other", "Names of its nodes", _nodes),
        Field("pinst_cnt", "Instances", "number", "How many", _instance_count),
        Field("pinst_list", "InstanceList", "other", "Their names", _instance_names),
        *COMMON,
    ),
    families=(Family("ndp", NAMES, _parameter),),
    every=every(NodeGroup),
    order=by_name,
    keys=keys(NodeGroup),
    absent=absent(NodeGroup),
)
