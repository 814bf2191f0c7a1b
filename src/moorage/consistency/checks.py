# SPDX-License-Identifier: BSD-2-Clause
"""What does not fit together in a configuration: each check, a generator."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from moorage.hypervisors import FAKE

from . import parameters, shared
from .parts import (
    NO_GROUP,
    NO_NODE,
    WORDS,
    Complaint,
    Complaints,
    Instance,
    Node,
    Params,
    Parts,
    default,
)

_UUID = re.compile(r"[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}")
_ACCESS = ("kernelspace", "userspace")
_WITH_ACCESS = ("ext", "gluster", "rbd")
_GLOBAL = "exclusive_storage"
"""A node parameter that a node alone cannot have."""
_AT_HEAD = {"node": "Node"}


def _cluster(message: str) -> Complaint:
    return Complaint("cluster", "", message)


def settings(parts: Parts) -> Complaints:
    """Find parameters of the cluster that are of a wrong type, or not there."""
    cluster = parts.cluster
    for attribute, params, types in (
        ("beparams", default(cluster.beparams), parameters.BACK_END),
        ("nicparams", default(cluster.nicparams), parameters.CARDS),
        ("ndparams", cluster.ndparams, parameters.NODES),
    ):
        if why := parameters.misfit(params, types):
            yield _cluster(f"cluster has invalid {attribute}: {why}")
    for why in parameters.policy(cluster.ipolicy, of_cluster=True):
        yield _cluster(f"cluster has {why}")
    for template in _WITH_ACCESS:
        access = cluster.diskparams.get(template, {}).get("access", _ACCESS[0])
        if access not in _ACCESS:
            yield _cluster(
                f"Invalid value of '{template}:access': '{access}' (expected one of "
                f"{', '.join(_ACCESS)})"
            )


def enabled(parts: Parts) -> Complaints:
    """Find a cluster of Ganeti's that could have no guests, or no disks."""
    cluster = parts.cluster
    if not cluster.enabled_hypervisors:
        yield _cluster("enabled hypervisors list doesn't have any entries")
    if not cluster.enabled_disk_templates:
        yield _cluster("enabled disk templates list doesn't have any entries")


def master(parts: Parts) -> Complaints:
    """Find a master that is none, or cannot lead."""
    cluster, nodes = parts.cluster, parts.nodes
    node = nodes.get(cluster.master_node)
    if node is None:
        yield _cluster(f"cluster has invalid primary node {cluster.master_node}")
    else:
        if not node.master_candidate:
            told = "Master node is not a master candidate"
            yield Complaint("node", node.name, told)
        if node.offline:
            yield Complaint("node", node.name, "Master node is offline")


def candidates(parts: Parts) -> Complaints:
    """Find too few candidates."""
    cluster, nodes = parts.cluster, parts.nodes
    now = sum(one.master_candidate for one in nodes.values())
    able = sum(
        one.master_capable and not (one.offline or one.drained)
        for one in nodes.values()
    )
    size = cluster.candidate_pool_size
    wanted = able if size is None else min(able, size)
    if now < wanted:
        yield _cluster(f"Not enough master candidates: actual {now}, target {wanted}")


def groups(parts: Parts) -> Complaints:
    """Find groups of one name, or like a uuid, and parameters that do not fit."""
    cluster, seen = parts.cluster, set()
    for group in parts.nodegroups.values():
        name, told = group.name, f"node group '{group.name}' (uuid: '{group.uuid}')"
        if _UUID.fullmatch(name.lower()):
            yield Complaint("group", name, f"{told} has uuid-like name")
        if name in seen:
            yield Complaint("group", name, f"duplicate node group name '{name}'")
        seen.add(name)
        rules = _filled_policy(cluster.ipolicy, group.ipolicy)
        for why in parameters.policy(rules, of_cluster=False):
            yield Complaint("group", name, f"group {name} has {why}")
        if not group.ndparams:
            continue
        own = cluster.ndparams | group.ndparams
        if why := parameters.misfit(own, parameters.NODES):
            yield Complaint("group", name, f"group {name} has invalid ndparams: {why}")


def _filled_policy(usual: Params, own: Params) -> Params:
    found = usual | own
    both = usual.get("std"), own.get("std")
    if isinstance(both[0], dict) and isinstance(both[1], dict):
        found["std"] = both[0] | both[1]
    return found


def hypervisors(parts: Parts) -> Complaints:
    """Find parameters of hypervisors that are of a wrong type, or not there."""
    return _hypervisors(parts, parameters.HYPERVISORS)


def guests(parts: Parts) -> Complaints:
    """Find parameters that guests are started with, and that are of a wrong type."""
    return _hypervisors(parts, parameters.STARTED_WITH)


def _hypervisors(parts: Parts, types: parameters.Types) -> Complaints:
    cluster = parts.cluster
    found = [
        *(
            ("", "cluster", name, cluster.hvparams.get(name, {}))
            for name in cluster.enabled_hypervisors
        ),
        *(
            ("", f"os {system}", name, params)
            for system, known in cluster.os_hvp.items()
            for name, params in known.items()
        ),
        *(
            (one.name, f"instance {one.name}", one.hypervisor, one.hvparams)
            for one in parts.instances.values()
        ),
    ]
    for owner, source, hypervisor, params in found:
        # What is set there, not what it inherits: each is told once.
        given = {name: value for name, value in params.items() if value is not None}
        why = parameters.misfit(given, types)
        if why and hypervisor != FAKE:
            told = f"hypervisor {source} parameters syntax check"
            told = f"{told} (source {hypervisor}): {why}"
            yield Complaint("instance" if owner else "cluster", owner, told)


def nodes(parts: Parts) -> Complaints:
    """Find nodes in two states at once, in no group, or with wrong parameters."""
    homes: dict[str, list[str]] = defaultdict(list)
    for one in parts.instances.values():
        homes[one.primary_node].append(one.name)
    for uuid, node in parts.nodes.items():
        if node.group not in parts.nodegroups:
            told = (
                "the following nodes (and their instances) belong to a non existing "
                f"group: {node.name} ({', '.join(homes[uuid])})"
            )
            yield Complaint("node", node.name, told, NO_GROUP)
        for told in _wrong_with(parts, node):
            yield Complaint("node", node.name, told)


def _wrong_with(parts: Parts, node: Node) -> Iterator[str]:
    candidate, drained, offline = node.master_candidate, node.drained, node.offline
    if candidate + drained + offline > 1:
        yield (
            f"Node {node.name} state is invalid: master_candidate={candidate}, "
            f"drain={drained}, offline={offline}"
        )
    group = parts.nodegroups.get(node.group)
    if group is None:
        yield f"Node '{node.name}' has invalid group '{node.group}'"
    else:
        own = parts.cluster.ndparams | group.ndparams | node.ndparams
        if why := parameters.misfit(own, parameters.NODES):
            yield f"node {node.name} has invalid ndparams: {why}"
    if _GLOBAL in node.ndparams:
        yield f"Node '{node.name}' has some global parameters set: {_GLOBAL}"


def instances(parts: Parts) -> Complaints:
    """Find instances without their node or disks, and with wrong parameters."""
    for instance in parts.instances.values():
        name = instance.name
        if instance.primary_node not in parts.nodes:
            told = f"the following instances have a non-existing primary-node: {name}"
            yield Complaint("instance", name, told, NO_NODE)
        for told in (*_dangling(parts, instance), *_parameters(parts, instance)):
            yield Complaint("instance", name, told)


def _parameters(parts: Parts, instance: Instance) -> Iterator[str]:
    usual, name = parts.cluster, instance.name
    for number, own in _cards(parts, instance):
        if why := parameters.misfit(own, parameters.CARDS):
            yield _card(name, number, why)
    if not instance.beparams:
        return
    own = default(usual.beparams) | instance.beparams
    if why := parameters.misfit(own, parameters.BACK_END):
        yield f"instance {name} has invalid beparams: {why}"


def _cards(parts: Parts, instance: Instance) -> Iterator[tuple[int, Params]]:
    """Yield the parameters of cards that have some of their own, filled in."""
    for number, nic in enumerate(instance.nics):
        if nic.nicparams:
            yield number, default(parts.cluster.nicparams) | nic.nicparams


def _card(name: str, number: int, why: str) -> str:
    return f"instance {name} nic {number} has invalid nicparams: {why}"


def links(parts: Parts) -> Complaints:
    """Find cards that would be connected to nothing."""
    if why := parameters.card(default(parts.cluster.nicparams)):
        yield _cluster(f"cluster has invalid nicparams: {why}")
    for instance in parts.instances.values():
        for number, own in _cards(parts, instance):
            if why := parameters.card(own):
                told = _card(instance.name, number, why)
                yield Complaint("instance", instance.name, told)


def _dangling(parts: Parts, instance: Instance) -> Iterator[str]:
    name = instance.name
    if instance.primary_node not in parts.nodes:
        yield f"instance '{name}' has invalid primary node '{instance.primary_node}'"
    found = [parts.disks[one] for one in instance.disks if one in parts.disks]
    others = {one for disk in found for one in disk.ends}
    for one in sorted(others - {instance.primary_node} - parts.nodes.keys()):
        yield f"instance '{name}' has invalid secondary node '{one}'"
    for uuid in instance.disks:
        if uuid not in parts.disks:
            yield f"Instance '{name}' has invalid disk '{uuid}'"


def disks(parts: Parts) -> Complaints:
    """Find disks of modes that are none, and what is not a whole mirror."""
    attached = {uuid for one in parts.instances.values() for uuid in one.disks}
    for uuid, disk in parts.disks.items():
        name = disk.label or uuid
        if disk.mode not in {"ro", "rw"}:
            told = f"Disk access mode '{disk.mode}' is invalid"
            yield Complaint("disk", name, f"disk {disk.uuid} error: {told}")
        if disk.is_mirror and not disk.mirror:
            told = f"logical_id {disk.logical_id} is no mirror's"
            yield Complaint("disk", name, f"disk {disk.uuid} error: {told}")
        for node in disk.ends:
            if node not in parts.nodes and uuid not in attached:
                told = f"disk {disk.uuid} error: invalid node '{node}'"
                yield Complaint("disk", name, told)


def keys(parts: Parts) -> Complaints:
    """Find objects under a key that is not theirs."""
    for place, word in WORDS.items():
        for key, one in getattr(parts, place).items():
            if one.uuid == key:
                continue
            name = one.name or one.uuid
            told = (
                f"{_AT_HEAD.get(word, word)} '{name}' is indexed by wrong UUID '{key}'"
            )
            if word == "group":
                told = (
                    f"node group '{name}' (uuid: '{one.uuid}') indexed by wrong uuid "
                    f"'{key}'"
                )
            yield Complaint(word, name, told)


def slots(parts: Parts) -> Complaints:
    """Find disks that are not called after their place."""
    for instance in parts.instances.values():
        wrong = [
            f"name of disk {number} should be 'disk/{number}', but is "
            f"'{parts.disks[uuid].iv_name}'"
            for number, uuid in enumerate(instance.disks)
            if uuid in parts.disks and parts.disks[uuid].iv_name != f"disk/{number}"
        ]
        if wrong:
            told = f"Instance '{instance.name}' has wrongly named disks: "
            yield Complaint("instance", instance.name, told + "; ".join(wrong))


Check = Callable[[Parts], Complaints]
OF_BOTH: tuple[Check, ...] = (
    *(settings, master, groups, nodes, instances, disks),
    *(shared.owners, shared.macs, shared.ports, shared.minors, shared.addresses),
)
"""What can be wrong with objects, wherever they are."""
OF_STORES: tuple[Check, ...] = (guests,)
"""What can be wrong with a store alone: commands let the rest through."""
OF_FILES: tuple[Check, ...] = (*(candidates, hypervisors, enabled, keys, links, slots),)
"""What can be wrong with a file alone: a store says it once, or none enables all."""
