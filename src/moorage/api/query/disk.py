# SPDX-License-Identifier: BSD-2-Clause
"""Disks as queries show them."""

from typing import Any

from moorage.model import Disk, Node, shown_id
from moorage.ops.storage.units import sunit, unit_of
from moorage.storage import template_named

from .field import COMMON, Field, Resource, attribute
from .objects import absent, by_name, every, keys
from .snapshot import Snapshot


def status(scene: Snapshot, disk: Disk) -> str:
    """Return whether an instance has it; quarantine comes first."""
    if disk.quarantine:
        return "quarantined"
    return "attached" if disk.uuid in scene.config.owners else "detached"


def _owner(scene: Snapshot, disk: Disk) -> str | None:
    owner = scene.config.owner(disk)
    return owner.name if owner else None


def _provider(scene: Snapshot, disk: Disk) -> str | None:
    del scene
    if not template_named(disk.dev_type).capabilities.provider:
        return None
    return str(disk.logical_id[0])


def _pool(scene: Snapshot, disk: Disk) -> str | None:
    pool = scene.config.pool_of(disk)
    return pool.name if pool else None


def _nodes(scene: Snapshot, disk: Disk) -> list[str]:
    objects = scene.config.objects
    found = (objects.get(uuid) for uuid in disk.nodes)
    return [node.name for node in found if isinstance(node, Node)]


def _node(scene: Snapshot, disk: Disk) -> str | None:
    """Return where it is used; for a detached one, where its data is."""
    owner = scene.config.owner(disk)
    if owner:
        return scene.config.node(owner.primary_node).name
    return next(iter(_nodes(scene, disk)), None)


def _last_node(scene: Snapshot, disk: Disk) -> str | None:
    node = scene.config.objects.get(disk.last_node or "")
    return node.name if isinstance(node, Node) else None


def _behind(scene: Snapshot, disk: Disk) -> str | None:
    node = scene.config.objects.get(disk.behind or "")
    return node.name if isinstance(node, Node) else None


def _group(scene: Snapshot, disk: Disk) -> str | None:
    owner = scene.config.owner(disk)
    uuid = scene.config.node(owner.primary_node).group if owner else disk.group
    known = uuid is not None and uuid in scene.config.objects
    return scene.config.group(uuid).name if uuid and known else None


def _unit(scene: Snapshot, disk: Disk) -> list[Any]:
    return sunit(unit_of(scene.config, disk))


DISK = Resource(
    name="disk",
    fields=(
        attribute("name", "Disk", "text", "Name that somebody gave it"),
        attribute("size", "Size", "unit", "Size promised to the guest"),
        attribute("mode", "Mode", "text", "rw or ro"),
        attribute("dev_type", "Template", "text", "How it is stored"),
        Field(
            "logical_id",
            "LogicalID",
            "other",
            "Where its data is",
            lambda _s, disk: shown_id(disk),
        ),
        attribute("volume", "Volume", "text", "Name of its volume"),
        Field("provider", "Provider", "text", "ExtStorage provider", _provider),
        Field("pool", "Pool", "text", "Storage pool that it is in", _pool),
        attribute("params", "Params", "other", "Parameters of template or provider"),
        Field("sunit", "Unit", "other", "Storage unit that it is in", _unit),
        Field("status", "Status", "text", "attached, detached, quarantined", status),
        Field("instance", "Instance", "text", "Who has it", _owner),
        Field(
            "iv_name",
            "IVName",
            "text",
            "Its slot",
            lambda s, disk: s.config.iv_name(disk),
        ),
        Field("node", "Node", "text", "Where it is used, or kept", _node),
        Field("nodes", "Nodes", "other", "Nodes that hold its data", _nodes),
        Field(
            "last_node",
            "LastNode",
            "text",
            "Who made it, or whose guest had it last",
            _last_node,
        ),
        Field(
            "behind",
            "Behind",
            "text",
            "Where its second copy missed writes, when last seen",
            _behind,
        ),
        Field("group", "Group", "text", "Node group that reaches it", _group),
        attribute("identity", "Identity", "text", "What names an adopted device"),
        attribute("epoch", "Epoch", "number", "Rises with every attach and move"),
        attribute("quarantine", "Quarantine", "text", "Why nobody may use it"),
        attribute("spindles", "Spindles", "number", "Spindles"),
        *COMMON,
    ),
    every=every(Disk),
    order=by_name,
    keys=keys(Disk),
    absent=absent(Disk),
)
