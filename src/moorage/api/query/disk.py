# SPDX-License-Identifier: BSD-2-Clause
"""Disks as queries show them."""

from typing import Any

from moorage.model import Disk, Node, NodeGroup, shown_id
from moorage.ops.asking.disk_presets import as_used
from moorage.ops.volumes.units import sunit, unit_of
from moorage.storage import template_named

from .field import Getter, flag, number, other, text, unit
from .objects import resource
from .snapshot import Snapshot


def status(snapshot: Snapshot, disk: Disk) -> str:
    """Return whether an instance has it; quarantine comes first."""
    if disk.quarantine:
        return "quarantined"
    return "attached" if disk.uuid in snapshot.config.owners else "detached"


def _owner(snapshot: Snapshot, disk: Disk) -> str | None:
    owner = snapshot.config.owner(disk)
    return owner.name if owner else None


def _provider(_scene: Snapshot, disk: Disk) -> str | None:
    if not template_named(disk.dev_type).capabilities.provider:
        return None
    return str(disk.logical_id[0])


def _pool(snapshot: Snapshot, disk: Disk) -> str | None:
    pool = snapshot.config.pool_of(disk)
    return pool.name if pool else None


def _nodes(snapshot: Snapshot, disk: Disk) -> list[str]:
    objects = snapshot.config.objects
    found = (objects.get(uuid) for uuid in disk.nodes)
    return [node.name for node in found if isinstance(node, Node)]


def _node(snapshot: Snapshot, disk: Disk) -> str | None:
    """Return where it is used; for a detached one, where its data is."""
    owner = snapshot.config.owner(disk)
    if owner:
        return snapshot.config.home(owner).name
    return next(iter(_nodes(snapshot, disk)), None)


def _node_in(field: str) -> Getter:
    """Return a getter of the name of a node whose uuid a field has."""

    def found(snapshot: Snapshot, disk: Disk) -> str | None:
        node = snapshot.config.objects.get(getattr(disk, field) or "")
        return node.name if isinstance(node, Node) else None

    return found


def _presets(snapshot: Snapshot, disk: Disk) -> dict[str, Any]:
    used = as_used(snapshot.config, disk).params
    return {name: value for name, value in used.items() if name not in disk.params}


def _group(snapshot: Snapshot, disk: Disk) -> str | None:
    owner = snapshot.config.owner(disk)
    uuid = snapshot.config.home(owner).group if owner else disk.group
    group = snapshot.config.objects.get(uuid or "")
    return group.name if isinstance(group, NodeGroup) else None


DISK = resource(
    "disk",
    Disk,
    fields=(
        text("name", "Disk", "Name that somebody gave it"),
        unit("size", "Size", "Size promised to the guest"),
        text("mode", "Mode", "rw or ro"),
        text("dev_type", "Template", "How it is stored"),
        other(
            "logical_id",
            "LogicalID",
            "Where its data is",
            lambda _s, disk: shown_id(disk),
        ),
        text("volume", "Volume", "Name of its volume"),
        text("provider", "Provider", "ExtStorage provider", _provider),
        text("pool", "Pool", "Storage pool that it is in", _pool),
        other("params", "Params", "Parameters of template or provider"),
        other(
            "presets",
            "Presets",
            "Parameters that its group or the cluster has it used with",
            _presets,
        ),
        other(
            "sunit",
            "Unit",
            "Storage unit that it is in",
            lambda s, disk: sunit(unit_of(s.config, disk)),
        ),
        text("status", "Status", "attached, detached, quarantined", status),
        text("instance", "Instance", "Who has it", _owner),
        text("iv_name", "IVName", "Its slot", lambda s, disk: s.config.iv_name(disk)),
        text("node", "Node", "Where it is used, or kept", _node),
        other("nodes", "Nodes", "Nodes that hold its data", _nodes),
        text(
            "last_node",
            "LastNode",
            "Who made it, or whose guest had it last",
            _node_in("last_node"),
        ),
        text(
            "behind",
            "Behind",
            "Where its second copy missed writes, when last seen",
            _node_in("behind"),
        ),
        text("group", "Group", "Node group that reaches it", _group),
        text("identity", "Identity", "What names an adopted device"),
        number("epoch", "Epoch", "Rises with every attach and move"),
        text("quarantine", "Quarantine", "Why nobody may use it"),
        flag("unproven", "Unproven", "Whether its volume may be somebody else's"),
        flag(
            "adopted", "Adopted", "Whether its volume was there before it", "was_there"
        ),
        number("spindles", "Spindles", "Spindles"),
    ),
)
