# SPDX-License-Identifier: BSD-2-Clause
"""Instances as queries show them."""

from collections.abc import Callable, Iterable
from typing import Any

from moorage import backend
from moorage.model import Config, GuestState, Instance, Node
from moorage.model.hvparams import KNOWN
from moorage.model.standstill import remedy, told
from moorage.ops import osparams
from moorage.ops.liveness import may_power_off
from moorage.ops.node_tasks import beparams, hvparams
from moorage.ops.storage.units import sunit, unit_of

from .console import CONSOLE
from .field import COMMON, Family, Field, Missing, Resource, attribute, numbered
from .nics import FAMILIES as CARD_FAMILIES
from .nics import FIELDS as CARD_FIELDS
from .objects import absent, by_name, every, keys
from .snapshot import Snapshot

BACKEND = (*backend.PARAMETERS, "memory")
_KINDS = {"size": "unit", "count": "number", "flag": "bool"}


# -- live ----------------------------------------------------------------------------


def status(scene: Snapshot, one: Instance) -> str:
    """Return Ganeti's word for how what is compares with what should be."""
    node = scene.config.node(one.primary_node)
    if node.offline:
        return "ERROR_nodeoffline"
    found = scene.guests.get(one.uuid, ())
    if not found:
        silent = _unanswered(scene, node) is Missing.NODATA
        return "ERROR_nodedown" if silent else _asleep(scene, one)
    if node.uuid not in [where for where, _ in found]:
        return "ERROR_wrongnode"
    if one.admin_state != "up":
        return "ERROR_up"
    return _standstill(scene, one) or "running"


def _standstill(scene: Snapshot, one: Instance) -> str | None:
    """Return QEMU's word for a guest that has a process and does not run."""
    guest = _guest(scene, one)
    if isinstance(guest, GuestState) and guest.state == "paused":
        return guest.cause or "paused"
    return None


def _status_hint(scene: Snapshot, one: Instance) -> str | None:
    """Return what a standstill means, and what to do about it."""
    cause = _standstill(scene, one)
    return f"{told(cause)}; {remedy(cause, one.name)}" if cause else None


def _asleep(scene: Snapshot, one: Instance) -> str:
    if one.admin_state == "up":
        itself = (one.primary_node, one.uuid) in scene.powered_off
        return (
            "USER_down" if itself and may_power_off(scene.config, one) else "ERROR_down"
        )
    if one.admin_state == "offline":
        return "ADMIN_offline"
    return "USER_down" if one.admin_state_source == "user" else "ADMIN_down"


def _guest(scene: Snapshot, one: Instance) -> GuestState | Missing | None:
    """Return the guest as it runs, on its own node if it runs there."""
    node = scene.config.node(one.primary_node)
    found = scene.guests.get(one.uuid)
    if found:
        own = (guest for where, guest in found if where == node.uuid)
        return next(own, found[0][1])
    return _unanswered(scene, node)


def _unanswered(scene: Snapshot, node: Node) -> Missing | None:
    if node.offline:
        return Missing.OFFLINE
    answered = not isinstance(scene.facts.get(node.uuid), Exception | None)
    return None if answered else Missing.NODATA


def _running(scene: Snapshot, one: Instance) -> bool | Missing:
    guest = _guest(scene, one)
    return guest if isinstance(guest, Missing) else guest is not None


def _holders(scene: Snapshot, one: Instance) -> list[str]:
    found = {node for disk in one.disks for node in scene.holders.get(disk, ())}
    return sorted(scene.config.node(node).name for node in found)


def _of_guest(name: str) -> Callable[[Snapshot, Any], Any]:
    def get(scene: Snapshot, one: Instance) -> Any:  # noqa: ANN401
        guest = _guest(scene, one)
        return getattr(guest, name) if isinstance(guest, GuestState) else guest

    return get


LIVE = (
    Field("status", "Status", "text", "What it does, or what is wrong", status, True),
    Field(
        "status.reason",
        "StatusReason",
        "text",
        "Why a guest that has a process stands still, and what to do",
        _status_hint,
        True,
    ),
    Field(
        "disk.holders",
        "DiskHolders",
        "other",
        "Nodes that have one of its disks attached",
        _holders,
        True,
    ),
    Field("oper_state", "Running", "bool", "Whether it runs", _running, True),
    Field("oper_ram", "Memory", "unit", "Memory it has", _of_guest("memory"), True),
    Field(
        "oper_vcpus", "VCPUs", "number", "Processors it has", _of_guest("vcpus"), True
    ),
)


# -- where ---------------------------------------------------------------------------


def _pnode(scene: Snapshot, one: Instance) -> Node:
    return scene.config.node(one.primary_node)


def _snodes(scene: Snapshot, one: Instance) -> list[Node]:
    return scene.config.secondary_nodes(one)


def _groups(scene: Snapshot, nodes: Iterable[Node], name: str) -> list[str]:
    return [str(getattr(scene.config.group(node.group), name)) for node in nodes]


PLACE = (
    Field(
        "pnode",
        "Primary_node",
        "text",
        "Node where it runs",
        lambda s, i: _pnode(s, i).name,
    ),
    Field(
        "pnode.group",
        "PrimaryNodeGroup",
        "text",
        "Group of that node",
        lambda s, i: _groups(s, [_pnode(s, i)], "name")[0],
    ),
    Field(
        "pnode.group.uuid",
        "PrimaryNodeGroupUUID",
        "text",
        "Uuid of that group",
        lambda s, i: _pnode(s, i).group,
    ),
    Field(
        "snodes",
        "Secondary_Nodes",
        "other",
        "Nodes that hold a second copy of its disks",
        lambda s, i: [node.name for node in _snodes(s, i)],
    ),
    Field(
        "snodes.group",
        "SecondaryNodesGroups",
        "other",
        "Groups of those nodes",
        lambda s, i: _groups(s, _snodes(s, i), "name"),
    ),
    Field(
        "snodes.group.uuid",
        "SecondaryNodesGroupsUUID",
        "other",
        "Uuids of those groups",
        lambda s, i: _groups(s, _snodes(s, i), "uuid"),
    ),
)


# -- parameters ----------------------------------------------------------------------


def _backend(scene: Snapshot, one: Instance) -> dict[str, Any]:
    filled = beparams(scene.config, one)
    return {**filled, "memory": filled["maxmem"]}


def _osparams(scene: Snapshot, one: Instance) -> dict[str, Any]:
    return osparams.public(scene.config, one)


def _backend_field(tail: str) -> Field | None:
    if tail not in BACKEND:
        return None
    kind = "unit" if tail == "memory" else _KINDS[backend.PARAMETERS[tail].kind]
    shown = {"memory": "ConfigMaxMem", "vcpus": "ConfigVCPUs"}.get(tail, f"be/{tail}")
    doc = f"Back-end parameter {tail}"
    return Field(f"be/{tail}", shown, kind, doc, lambda s, i: _backend(s, i).get(tail))


def _hypervisor_field(tail: str) -> Field:
    doc = f"Hypervisor parameter {tail}"
    return Field(
        f"hv/{tail}",
        f"hv/{tail}",
        "other",
        doc,
        lambda s, i: hvparams(s.config, i).get(tail),
    )


PARAMETERS = (
    attribute("hypervisor", "Hypervisor", "text", "Hypervisor"),
    attribute("os", "OS", "text", "Operating system definition"),
    Field(
        "hvparams",
        "HypervisorParameters",
        "other",
        "Hypervisor parameters, the cluster's included",
        lambda s, i: hvparams(s.config, i),
    ),
    Field(
        "beparams",
        "BackendParameters",
        "other",
        "Back-end parameters, the cluster's included",
        _backend,
    ),
    Field(
        "osparams",
        "OpSysParameters",
        "other",
        "OS parameters, the cluster's included",
        _osparams,
    ),
    attribute("custom_hvparams", "CustomHvParams", "other", "Its own", "hvparams"),
    attribute("custom_beparams", "CustomBeParams", "other", "Its own", "beparams"),
    attribute("custom_osparams", "CustomOsParams", "other", "Its own", "osparams"),
    Field(
        "vcpus",
        "ConfigVCPUs",
        "number",
        "Processors it should have",
        lambda s, i: _backend(s, i)["vcpus"],
    ),
)


# -- disks ---------------------------------------------------------------------------


def _sizes(scene: Snapshot, one: Instance) -> list[int]:
    return [disk.size for disk in scene.config.disks_of(one)]


def _units(scene: Snapshot, one: Instance) -> list[list[Any]]:
    config = scene.config
    return [sunit(unit_of(config, disk)) for disk in config.disks_of(one)]


def _each(name: str) -> Callable[[Snapshot, Any], Any]:
    return lambda s, i: [getattr(disk, name) for disk in s.config.disks_of(i)]


def _nth(name: str) -> Callable[[Snapshot, Any, int], Any]:
    return lambda s, i, n: getattr(s.config.objects[i.disks[n]], name)


_DISKS = 16
"""How many disks an instance can have."""


def _size_of(number: int) -> Callable[[Snapshot, Any], Any]:
    def get(scene: Snapshot, one: Instance) -> int | None:
        sizes = _sizes(scene, one)
        return sizes[number] if number < len(sizes) else None

    return get


DISKS = (
    Field(
        "disk_template",
        "Disk_template",
        "text",
        "Template of its disks; mixed if there are several",
        lambda s, i: s.config.template_of(i),
    ),
    attribute("disks_active", "DisksActive", "bool", "Whether they are attached"),
    Field("disk.count", "Disks", "number", "How many", lambda _s, i: len(i.disks)),
    Field("disk.sizes", "Disk_sizes", "other", "Their sizes in MiB", _sizes),
    Field(
        "disk.spindles", "Disk_spindles", "other", "Their spindles", _each("spindles")
    ),
    Field("disk.names", "Disk_names", "other", "Their names", _each("name")),
    attribute("disk.uuids", "Disk_UUIDs", "other", "Their uuids", "disks"),
    Field(
        "disk.templates",
        "Disk_templates",
        "other",
        "Their templates",
        _each("dev_type"),
    ),
    Field("disk.sunits", "Disk_units", "other", "Their storage units", _units),
    Field(
        "disk_usage",
        "DiskUsage",
        "unit",
        "Sum of their sizes",
        lambda s, i: sum(_sizes(s, i)),
    ),
    Field("sda_size", "LegacyDisk/0", "unit", "Size of the first", _size_of(0)),
    Field("sdb_size", "LegacyDisk/1", "unit", "Size of the second", _size_of(1)),
)
FAMILIES = (
    Family("be", BACKEND, _backend_field),
    Family("hv", KNOWN, _hypervisor_field),
    numbered("disk.size", ("Disk", "unit", "Size of disk"), _nth("size"), _DISKS),
    numbered(
        "disk.spindles",
        ("DiskSpindles", "number", "Spindles of disk"),
        _nth("spindles"),
        _DISKS,
    ),
    numbered("disk.name", ("DiskName", "text", "Name of disk"), _nth("name"), _DISKS),
    numbered("disk.uuid", ("DiskUUID", "text", "Uuid of disk"), _nth("uuid"), _DISKS),
    *CARD_FAMILIES,
)


def _no(_scene: Snapshot, _one: Instance) -> bool:
    return False


STATE = (
    attribute("admin_state", "InstanceState", "text", "What it should be"),
    attribute(
        "admin_state_source", "InstanceStateSource", "text", "Who said so: admin, user"
    ),
    Field(
        "admin_up",
        "Autostart",
        "bool",
        "Whether it should run",
        lambda _s, i: i.admin_state == "up",
    ),
    Field("forthcoming", "Forthcoming", "bool", "No: it is made at once", _no),
    attribute("network_port", "Network_port", "number", "Port of its console"),
)


def _nodes(config: Config, found: Iterable[Any], every_one: bool) -> Iterable[str]:
    """Return the nodes that may run the instances; all, where all are shown."""
    if every_one:
        return [node.uuid for node in config.all(Node) if node.vm_capable]
    return {one.primary_node for one in found}


INSTANCE = Resource(
    name="instance",
    fields=(
        attribute("name", "Instance", "text", "Name"),
        *STATE,
        *PLACE,
        *PARAMETERS,
        *DISKS,
        *CARD_FIELDS,
        *LIVE,
        CONSOLE,
        *COMMON,
    ),
    families=FAMILIES,
    every=every(Instance),
    order=by_name,
    keys=keys(Instance),
    nodes=_nodes,
    absent=absent(Instance),
)
