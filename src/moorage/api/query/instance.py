# SPDX-License-Identifier: BSD-2-Clause
"""Instances as queries show them."""

from collections.abc import Callable, Iterable
from typing import Any

from moorage import backend
from moorage.model import Config, GuestState, Instance, Node, NodeGroup
from moorage.model.objects import MOST_DISKS
from moorage.model.standstill import remedy, told
from moorage.ops.asking.node_tasks import beparams
from moorage.ops.guests import osparams
from moorage.ops.guests.liveness import may_power_off
from moorage.ops.volumes.units import occupied, sunit, unit_of

from . import defaults, hypervisor
from .console import CONSOLE
from .field import (
    Family,
    Field,
    Missing,
    flag,
    nth,
    number,
    numbered,
    other,
    text,
    unit,
)
from .nics import FAMILIES as CARD_FAMILIES
from .nics import FIELDS as CARD_FIELDS
from .objects import resource
from .snapshot import Snapshot

BACKEND = (*backend.PARAMETERS, "memory")
_TITLES = {
    "auto_balance": "Auto_balance",
    "maxmem": "ConfigMaxMem",
    "memory": "ConfigMaxMem",
    "minmem": "ConfigMinMem",
    "vcpus": "ConfigVCPUs",
}
_KINDS = {"size": "unit", "count": "number", "flag": "bool"}


def status(snapshot: Snapshot, one: Instance) -> str:
    """Return Ganeti's word for how what is compares with what should be."""
    node = snapshot.config.home(one)
    if node.offline:
        return "ERROR_nodeoffline"
    found = snapshot.guests.get(one.uuid, ())
    if not found:
        silent = _unanswered(snapshot, node) is Missing.NODATA
        return "ERROR_nodedown" if silent else _asleep(snapshot, one)
    if node.uuid not in [where for where, _ in found]:
        return "ERROR_wrongnode"
    if one.admin_state != "up":
        return "ERROR_up"
    stands = _standstill(snapshot, one) or "running"
    return "paused" if stands == "prelaunch" else stands


def _standstill(snapshot: Snapshot, one: Instance) -> str | None:
    """Return QEMU's word for a guest that has a process and does not run."""
    guest = _guest(snapshot, one)
    if isinstance(guest, GuestState) and guest.state == "paused":
        return guest.cause or "paused"
    return None


def _status_hint(snapshot: Snapshot, one: Instance) -> str | None:
    """Return what a standstill means, and what to do about it."""
    cause = _standstill(snapshot, one)
    return f"{told(cause)}; {remedy(cause, one.name)}" if cause else None


def _asleep(snapshot: Snapshot, one: Instance) -> str:
    if one.admin_state == "up":
        itself = (one.primary_node, one.uuid) in snapshot.powered_off
        return (
            "USER_down"
            if itself and may_power_off(snapshot.config, one)
            else "ERROR_down"
        )
    if one.admin_state == "offline":
        return "ADMIN_offline"
    return "USER_down" if one.admin_state_source == "user" else "ADMIN_down"


def _guest(snapshot: Snapshot, one: Instance) -> GuestState | Missing | None:
    """Return the guest as it runs, on its own node if it runs there."""
    node = snapshot.config.home(one)
    found = snapshot.guests.get(one.uuid)
    if found:
        own = (guest for where, guest in found if where == node.uuid)
        return next(own, found[0][1])
    return _unanswered(snapshot, node)


def _unanswered(snapshot: Snapshot, node: Node) -> Missing | None:
    if node.offline:
        return Missing.OFFLINE
    answered = not isinstance(snapshot.facts.get(node.uuid), Exception | None)
    return None if answered else Missing.NODATA


def _running(snapshot: Snapshot, one: Instance) -> bool | Missing:
    guest = _guest(snapshot, one)
    return guest if isinstance(guest, Missing) else guest is not None


def _holders(snapshot: Snapshot, one: Instance) -> list[str]:
    found = {node for disk in one.disks for node in snapshot.holders.get(disk, ())}
    return sorted(snapshot.config.node(node).name for node in found)


def _of_guest(name: str) -> Callable[[Snapshot, Any], Any]:
    def get(snapshot: Snapshot, one: Instance) -> Any:  # noqa: ANN401
        guest = _guest(snapshot, one)
        return getattr(guest, name) if isinstance(guest, GuestState) else guest

    return get


LIVE = (
    text("status", "Status", "What it does, or what is wrong", status, live=True),
    text(
        "status.reason",
        "StatusReason",
        "Why a guest that has a process stands still, and what to do",
        _status_hint,
        live=True,
    ),
    other(
        "disk.holders",
        "DiskHolders",
        "Nodes that have one of its disks attached",
        _holders,
        live=True,
    ),
    flag("oper_state", "Running", "Whether it runs", _running, live=True),
    unit("oper_ram", "Memory", "Memory it has", _of_guest("holds"), live=True),
    number("oper_vcpus", "VCPUs", "Processors it has", _of_guest("vcpus"), live=True),
)


def _snode_groups(snapshot: Snapshot, one: Instance) -> list[NodeGroup]:
    config = snapshot.config
    return [config.group(node.group) for node in config.secondary_nodes(one)]


PLACE = (
    text(
        "pnode",
        "Primary_node",
        "Node where it runs",
        lambda s, i: s.config.home(i).name,
    ),
    text(
        "pnode.group",
        "PrimaryNodeGroup",
        "Group of that node",
        lambda s, i: s.config.group_of(i).name,
    ),
    text(
        "pnode.group.uuid",
        "PrimaryNodeGroupUUID",
        "Uuid of that group",
        lambda s, i: s.config.group_of(i).uuid,
    ),
    other(
        "snodes",
        "Secondary_Nodes",
        "Nodes that hold a second copy of its disks",
        lambda s, i: [node.name for node in s.config.secondary_nodes(i)],
    ),
    other(
        "snodes.group",
        "SecondaryNodesGroups",
        "Groups of those nodes",
        lambda s, i: [one.name for one in _snode_groups(s, i)],
    ),
    other(
        "snodes.group.uuid",
        "SecondaryNodesGroupsUUID",
        "Uuids of those groups",
        lambda s, i: [one.uuid for one in _snode_groups(s, i)],
    ),
)


def _backend(snapshot: Snapshot, one: Instance) -> dict[str, Any]:
    filled = beparams(snapshot.config, one)
    return {**filled, "memory": filled["maxmem"]}


def _backend_field(tail: str) -> Field | None:
    if tail not in BACKEND:
        return None
    kind = "unit" if tail == "memory" else _KINDS[backend.PARAMETERS[tail].kind]
    shown = _TITLES.get(tail, f"be/{tail}")
    doc = f"Back-end parameter {tail}"
    return Field(f"be/{tail}", shown, kind, doc, lambda s, i: _backend(s, i).get(tail))


PARAMETERS = (
    text("hypervisor", "Hypervisor", "Hypervisor"),
    text("os", "OS", "Operating system definition"),
    other(
        "hvparams",
        "HypervisorParameters",
        "Hypervisor parameters, the cluster's included",
        lambda s, i: defaults.of_instance(s.config, i),
    ),
    other(
        "beparams",
        "BackendParameters",
        "Back-end parameters, the cluster's included",
        _backend,
    ),
    other(
        "osparams",
        "OpSysParameters",
        "OS parameters, the cluster's included",
        lambda s, i: osparams.public(s.config, i),
    ),
    other("custom_hvparams", "CustomHypervisorParameters", "Its own", "hvparams"),
    other("custom_beparams", "CustomBackendParameters", "Its own", "beparams"),
    other("custom_osparams", "CustomOpSysParameters", "Its own", "osparams"),
    number(
        "vcpus",
        "ConfigVCPUs",
        "Processors it should have",
        lambda s, i: _backend(s, i)["vcpus"],
    ),
)


def _sizes(snapshot: Snapshot, one: Instance) -> list[int]:
    return [disk.size for disk in snapshot.config.disks_of(one)]


def _usage(snapshot: Snapshot, one: Instance) -> int:
    return sum(occupied(d.dev_type, d.size) for d in snapshot.config.disks_of(one))


def _units(snapshot: Snapshot, one: Instance) -> list[list[Any]]:
    config = snapshot.config
    return [sunit(unit_of(config, disk)) for disk in config.disks_of(one)]


def _each(name: str) -> Callable[[Snapshot, Any], Any]:
    return lambda s, i: [getattr(disk, name) for disk in s.config.disks_of(i)]


def _nth(name: str) -> Callable[[Snapshot, Any, int], Any]:
    return lambda s, i, n: getattr(s.config.objects[i.disks[n]], name)


DISKS = (
    text(
        "disk_template",
        "Disk_template",
        "Template of its disks; mixed if there are several",
        lambda s, i: s.config.template_of(i),
    ),
    flag("disks_active", "DisksActive", "Whether they are attached"),
    number("disk.count", "Disks", "How many", lambda _s, i: len(i.disks)),
    other("disk.sizes", "Disk_sizes", "Their sizes in MiB", _sizes),
    other("disk.spindles", "Disk_spindles", "Their spindles", _each("spindles")),
    other("disk.names", "Disk_names", "Their names", _each("name")),
    other("disk.uuids", "Disk_UUIDs", "Their uuids", "disks"),
    other("disk.templates", "Disk_templates", "Their templates", _each("dev_type")),
    other("disk.sunits", "Disk_units", "Their storage units", _units),
    unit("disk_usage", "DiskUsage", "What they take on each of its nodes", _usage),
    unit("sda_size", "Disk/0", "Size of the first", nth(_nth("size"), 0)),
    unit("sdb_size", "Disk/1", "Size of the second", nth(_nth("size"), 1)),
)
FAMILIES = (
    Family("be", BACKEND, _backend_field),
    hypervisor.FAMILY,
    numbered("disk.size", ("Disk", "unit", "Size of disk"), _nth("size"), MOST_DISKS),
    numbered(
        "disk.spindles",
        ("DiskSpindles", "number", "Spindles of disk"),
        _nth("spindles"),
        MOST_DISKS,
    ),
    numbered(
        "disk.name", ("DiskName", "text", "Name of disk"), _nth("name"), MOST_DISKS
    ),
    numbered(
        "disk.uuid", ("DiskUUID", "text", "Uuid of disk"), _nth("uuid"), MOST_DISKS
    ),
    *CARD_FAMILIES,
)


STATE = (
    text("admin_state", "InstanceState", "What it should be"),
    text("admin_state_source", "InstanceStateSource", "Who said so: admin, user"),
    flag(
        "admin_up",
        "Autostart",
        "Whether it should run",
        lambda _s, i: i.admin_state == "up",
    ),
    flag("forthcoming", "Forthcoming", "No: it is made at once", lambda _s, _i: False),
    other("network_port", "Network_port", "Port of its console"),
)


def _nodes(config: Config, found: Iterable[Any], every_one: bool) -> Iterable[str]:
    """Return the nodes that may run the instances; all, where all are shown."""
    if every_one:
        return [node.uuid for node in config.all(Node) if node.vm_capable]
    return {one.primary_node for one in found}


INSTANCE = resource(
    "instance",
    Instance,
    fields=(
        text("name", "Instance", "Name"),
        *STATE,
        *PLACE,
        *PARAMETERS,
        *DISKS,
        *CARD_FIELDS,
        *LIVE,
        CONSOLE,
    ),
    families=FAMILIES,
    nodes=_nodes,
)
