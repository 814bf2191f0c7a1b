# SPDX-License-Identifier: BSD-2-Clause
"""The hooks of every operation: their directory, nodes and variables."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from moorage.jobs import Hooked, Operation, Task, View
from moorage.model import Node

from . import instance
from .context import HookContext

Nodes = Callable[[HookContext], list[str]]
"""Returns uuids of nodes."""


def _master(context: HookContext) -> str:
    return context.config.cluster.master_node


def _at_master(context: HookContext) -> list[str]:
    return [_master(context)]


def _of_instance(context: HookContext) -> list[str]:
    """Return the master's node and all of the instance's, as they are and will be."""
    now, then = context.nodes(context.instance), context.nodes(context.moved)
    return list(dict.fromkeys([_master(context), *now, *then]))


def _but_home(context: HookContext) -> list[str]:
    """Return the same without the node that is left: it may be dead."""
    gone = {context.instance.primary_node} - {_master(context)}
    return [one for one in _of_instance(context) if one not in gone]


def _everywhere(context: HookContext) -> list[str]:
    return [node.uuid for node in context.config.named(Node)]


def _others(context: HookContext) -> list[str]:
    """Return all nodes but the one that comes or goes."""
    name = context.field("node_name")
    nodes = context.config.named(Node)
    return [node.uuid for node in nodes if name not in (node.name, node.uuid)]


def _with_node(context: HookContext) -> list[str]:
    """Return the master's node and the one that it is about, unless that goes off."""
    node = context.config.node(str(context.field("node_name"))).uuid
    named = [] if context.field("offline") else [node]
    return list(dict.fromkeys([_master(context), *named]))


def _with_group(context: HookContext) -> list[str]:
    """Return the master's node and those of the group, by its old name or its new."""
    names = (context.field("group_name"), context.field("new_name"))
    nodes = context.config.named(Node)
    inside = [
        n.uuid for n in nodes if context.name(n.group) in names or n.group in names
    ]
    return list(dict.fromkeys([_master(context), *inside]))


def _cluster(context: HookContext) -> dict[str, str]:
    return {"OP_TARGET": context.config.cluster.cluster_name}


def _tags(context: HookContext) -> dict[str, str]:
    nodes = context.config.named(Node)
    return {
        "CLUSTER_TAGS": " ".join(sorted(context.config.cluster.tags)),
        **{f"NODE_TAGS_{one.name}": " ".join(sorted(one.tags)) for one in nodes},
    }


def _node(context: HookContext) -> dict[str, str]:
    name = str(context.field("node_name"))
    return {"OP_TARGET": name, "NODE_NAME": name}


def _move(context: HookContext) -> dict[str, str]:
    """Return the nodes that an instance leaves and goes to."""
    old, new = context.nodes(context.instance), context.nodes(context.moved)
    if context.field("target_node") and not context.tasks:
        new = old
    found = {"OLD_PRIMARY": old[:1], "NEW_PRIMARY": new[:1]}
    found |= {"OLD_SECONDARY": old[1:2], "NEW_SECONDARY": new[1:2]}
    told = {name: "".join(map(context.name, one)) for name, one in found.items()}
    return instance.variables(context) | told


def _renamed(context: HookContext) -> dict[str, str]:
    return {"OLD_NAME": str(context.field("group_name"))}


class Own(NamedTuple):
    """The hooks of an operation.

    Attributes
    ----------
    path
        Name of their directories, without the phase.
    kind
        What it is about.
    fields
        Variables that are fields of the operation, by the variable.
    nodes
        Where they run.
    more
        Tells further variables.
    before
        Where those before run, if that is not the same; None where it is.
    """

    path: str
    kind: str
    fields: Mapping[str, str] = MappingProxyType({})
    nodes: Nodes = _at_master
    more: Callable[[HookContext], dict[str, str]] = lambda _: {}
    before: Nodes | None = None


NODE_FIELDS = {
    "MASTER_CANDIDATE": "master_candidate",
    "OFFLINE": "offline",
    "DRAINED": "drained",
    "MASTER_CAPABLE": "master_capable",
    "VM_CAPABLE": "vm_capable",
}


def _on_instance(
    path: str,
    nodes: Nodes = _of_instance,
    more: Callable[[HookContext], dict[str, str]] = instance.variables,
    before: Nodes | None = None,
    **fields: str,
) -> Own:
    return Own(path, "INSTANCE", fields, nodes, more, before)


OWN: dict[str, Own] = {
    "OP_CLUSTER_RENAME": Own(
        "cluster-rename",
        "CLUSTER",
        {"NEW_NAME": "name"},
        _everywhere,
        _cluster,
        before=_at_master,
    ),
    "OP_CLUSTER_SET_PARAMS": Own(
        "cluster-modify", "CLUSTER", {"NEW_VG_NAME": "volume_group_name"}, more=_cluster
    ),
    "OP_CLUSTER_VERIFY": Own(
        "cluster-verify",
        "CLUSTER",
        nodes=_everywhere,
        more=_tags,
        before=lambda _: [],
    ),
    "OP_GROUP_ADD": Own("group-add", "GROUP", {"GROUP_NAME": "group_name"}),
    "OP_GROUP_EVACUATE": Own(
        "group-evacuate", "GROUP", {"GROUP_NAME": "group_name"}, _with_group
    ),
    "OP_GROUP_REMOVE": Own("group-remove", "GROUP", {"GROUP_NAME": "group_name"}),
    "OP_GROUP_RENAME": Own(
        "group-rename", "GROUP", {"NEW_NAME": "new_name"}, _with_group, _renamed
    ),
    "OP_GROUP_SET_PARAMS": Own(
        "group-modify",
        "GROUP",
        {"GROUP_NAME": "group_name", "NEW_ALLOC_POLICY": "alloc_policy"},
    ),
    "OP_NODE_ADD": Own(
        "node-add",
        "NODE",
        {
            "NODE_PIP": "primary_ip",
            "NODE_SIP": "secondary_ip",
            "MASTER_CAPABLE": "master_capable",
            "VM_CAPABLE": "vm_capable",
        },
        _others,
        _node,
    ),
    "OP_NODE_REMOVE": Own("node-remove", "NODE", nodes=_others, more=_node),
    "OP_NODE_SET_PARAMS": Own("node-modify", "NODE", NODE_FIELDS, _with_node, _node),
    "OP_NODE_MIGRATE": Own("node-migrate", "NODE", more=_node),
    "OP_INSTANCE_CREATE": _on_instance(
        "instance-add",
        ADD_MODE="mode",
        SRC_NODE="src_node",
        SRC_PATH="src_path",
    ),
    "OP_INSTANCE_REINSTALL": _on_instance("instance-reinstall"),
    "OP_BACKUP_EXPORT": _on_instance(
        "instance-export",
        EXPORT_MODE="mode",
        EXPORT_NODE="target_node",
        EXPORT_DO_SHUTDOWN="shutdown",
        REMOVE_INSTANCE="remove_instance",
        SHUTDOWN_TIMEOUT="shutdown_timeout",
    ),
    "OP_INSTANCE_STARTUP": _on_instance("instance-start", FORCE="force"),
    "OP_INSTANCE_SHUTDOWN": _on_instance("instance-stop", TIMEOUT="timeout"),
    "OP_INSTANCE_REBOOT": _on_instance(
        "instance-reboot",
        IGNORE_SECONDARIES="ignore_secondaries",
        REBOOT_TYPE="reboot_type",
        SHUTDOWN_TIMEOUT="shutdown_timeout",
    ),
    "OP_INSTANCE_RESTART_GUEST": _on_instance(
        "instance-reboot", SHUTDOWN_TIMEOUT="shutdown_timeout"
    ),
    "OP_INSTANCE_SET_PARAMS": _on_instance(
        "instance-modify",
        NEW_DISK_TEMPLATE="disk_template",
        RUNTIME_MEMORY="runtime_mem",
    ),
    "OP_INSTANCE_FAILOVER": _on_instance(
        "instance-failover",
        more=_move,
        before=_but_home,
        IGNORE_CONSISTENCY="ignore_consistency",
        FAILOVER_CLEANUP="cleanup",
        SHUTDOWN_TIMEOUT="shutdown_timeout",
    ),
    "OP_INSTANCE_MIGRATE": _on_instance(
        "instance-migrate",
        more=_move,
        MIGRATE_LIVE="live",
        MIGRATE_CLEANUP="cleanup",
        ALLOW_RUNTIME_CHANGES="allow_runtime_changes",
    ),
    "OP_INSTANCE_REMOVE": _on_instance(
        "instance-remove", before=_at_master, SHUTDOWN_TIMEOUT="shutdown_timeout"
    ),
    "OP_INSTANCE_RENAME": _on_instance("instance-rename", INSTANCE_NEW_NAME="new_name"),
    "OP_INSTANCE_MOVE": _on_instance(
        "instance-move", TARGET_NODE="target_node", SHUTDOWN_TIMEOUT="shutdown_timeout"
    ),
    "OP_INSTANCE_RECREATE_DISKS": _on_instance("instance-recreate-disks"),
    "OP_INSTANCE_CHANGE_GROUP": _on_instance("instance-change-group", _at_master),
    "OP_INSTANCE_GROW_DISK": _on_instance(
        "disk-grow", DISK="disk", AMOUNT="amount", ABSOLUTE="absolute"
    ),
    "OP_INSTANCE_REPLACE_DISKS": _on_instance(
        "mirrors-replace", more=_move, MODE="mode", NEW_SECONDARY="remote_node"
    ),
    **{
        f"OP_NETWORK_{verb}": Own(
            f"network-{verb.lower().replace('set_params', 'modify')}",
            "NETWORK",
            {"NETWORK_NAME": "network_name"},
        )
        for verb in ("ADD", "REMOVE", "RENAME", "SET_PARAMS", "CONNECT", "DISCONNECT")
    },
}
"""The operations that have hooks in Ganeti."""


def of(operation: Operation, view: View, tasks: Sequence[Task]) -> Hooked:
    """Return the hooks of an operation that is about to do some tasks."""
    own = OWN.get(operation.op_id)
    if own is None:
        return Hooked()
    context = HookContext(operation, view.config, tasks)
    before, after = (own.before or own.nodes)(context), own.nodes(context)
    env = {name: instance.text(context.field(one)) for name, one in own.fields.items()}
    return Hooked(
        own.path, own.kind, tuple(before), tuple(after), own.more(context) | env
    )
