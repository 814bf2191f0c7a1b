# SPDX-License-Identifier: BSD-2-Clause
"""What an allocator reads: the cluster and a request, in Ganeti's shape.

The numbers are the planner's, as :mod:`.fleet` reads them: with what jobs under way
have chosen, and without nodes that say nothing. Beside Ganeti's keys stand the storage
units of nodes and disks (``storage``, ``sunit``), for allocators that know them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import json

from moorage import htools
from moorage.disk_templates import FACTS
from moorage.jobs import View
from moorage.model import (
    DISKLESS,
    Config,
    Disk,
    Instance,
    Nic,
    Node,
    NodeGroup,
    ipolicy,
    nicparams,
)
from moorage.ops.ndparams import DEFAULTS, filled
from moorage.ops.volumes.units import sunit, unit_of

from . import fleet, placement
from .fleet import Newcomer, Reading

Json = dict[str, Any]
VERSION = 2
"""Of Ganeti's protocol of allocators."""
_STATES = {"running": "up", "ADMIN_down": "down", "ADMIN_offline": "offline"}


def allocate(
    view: View,
    instance: Instance,
    wanted: Newcomer,
    allowed: Iterable[Node],
    *,
    count: int,
    group: str | None,
) -> Json:
    """Return the request for the nodes of a new instance.

    Parameters
    ----------
    instance
        As it will be, on no node yet.
    allowed
        The only nodes that it may be on.
    count
        How many it needs.
    group
        Name or uuid of the only node group; None for any.
    """
    row = fleet.newcomer(wanted, _reading(view))
    homes = list(allowed)
    cards = view.config.group(homes[0].group)
    found = {
        "type": "allocate",
        **_sizes(row),
        "name": row.name,
        "os": instance.os,
        "hypervisor": instance.hypervisor,
        "disks": [
            _disk(disk, template) | {"mode": "rw"}
            for disk, (template, _) in zip(row.disks, wanted.disks, strict=True)
        ],
        "nics": _nics(view.config, cards, instance.nics),
        "required_nodes": count,
        "restrict-to-nodes": [node.name for node in homes],
    }
    return found | ({"group_name": view.config.group(group).name} if group else {})


def multi_allocate(each: Sequence[Json]) -> Json:
    """Return the request for the nodes of several new instances."""
    return {"type": "multi-allocate", "instances": each}


def relocate(view: View, instance: Instance, leave: Node) -> Json:
    """Return the request for another node in the place of one that it leaves."""
    disks = view.config.disks_of(instance)
    return {
        "type": "relocate",
        "name": instance.name,
        "disk_space_total": sum(disk.size for disk in disks),
        "required_nodes": 1,
        "relocate_from": [leave.name],
    }


def evacuate(instances: Iterable[Instance], mode: str) -> Json:
    """Return the request for nodes of instances that leave theirs."""
    names = [one.name for one in instances]
    return {"type": "node-evacuate", "instances": names, "evac_mode": mode}


def change_group(instances: Iterable[Instance], groups: Iterable[NodeGroup]) -> Json:
    """Return the request for nodes of instances in other node groups."""
    return {
        "type": "change-group",
        "instances": [one.name for one in instances],
        "target_groups": [one.uuid for one in groups],
    }


def written(view: View, request: Json) -> str:
    """Return the whole message."""
    config, how = view.config, _reading(view)
    cluster, rows = config.cluster, fleet.fleet(view, how)
    homes = dict(zip((node.name for node in rows.nodes), how.nodes, strict=True))
    unit = _unit(config, request)
    memory = _memory(rows)
    return json.encode(
        {
            "version": VERSION,
            "cluster_name": cluster.cluster_name,
            "cluster_tags": cluster.tags,
            "enabled_hypervisors": cluster.enabled_hypervisors,
            "ipolicy": ipolicy.cluster_policy(cluster),
            "nodegroups": {
                one.uuid: _group(config, one) for one in config.named(NodeGroup)
            },
            "nodes": {
                row.name: _node(config, homes[row.name], row, unit) | memory.get(at, {})
                for at, row in enumerate(rows.nodes)
            },
            "instances": {
                row.name: _instance(config, rows, row) for row in rows.instances
            },
            "request": request,
        }
    ).decode()


def _reading(view: View) -> Reading:
    groups = [group.uuid for group in view.config.named(NodeGroup)]
    return Reading(fleet.of_groups(view.config, groups), placement.room(view))


def _group(config: Config, group: NodeGroup) -> Json:
    return {
        "name": group.name,
        "alloc_policy": group.alloc_policy,
        "networks": list(group.networks),
        "ipolicy": ipolicy.group_policy(config.cluster, group),
        "tags": group.tags,
    }


def _node(config: Config, node: Node, row: htools.NodeRow, unit: Sequence[str]) -> Json:
    """Return a node; what only a living one can tell is left out of others."""
    silent = row.units is None
    found = {
        "tags": node.tags,
        "primary_ip": node.primary_ip,
        "secondary_ip": node.secondary_ip,
        "offline": node.offline or (silent and node.vm_capable),
        "drained": node.drained,
        "master_candidate": node.master_candidate,
        "master_capable": node.master_capable,
        "vm_capable": node.vm_capable,
        "group": node.group,
        "ndparams": {**DEFAULTS, **filled(config, node)},
    }
    return found if silent else found | _living(row, unit)


def _living(row: htools.NodeRow, unit: Sequence[str]) -> Json:
    units = row.units or ()
    kind, key = unit
    room = next(
        (u for u in units if u.name[0] == kind and key in ("", u.name[1])), None
    )
    return {
        "total_memory": int(row.mem_total),
        "reserved_memory": row.mem_own,
        "free_memory": row.mem_free,
        "total_cpus": int(row.cpus),
        "reserved_cpus": row.cpus_own,
        "total_disk": (room and room.total) or 0,
        "free_disk": (room and room.free) or 0,
        "total_spindles": row.spindles if row.exclusive else 0,
        "free_spindles": row.spindles_free if row.exclusive else 0,
        "storage": [
            {
                "sunit": sunit((one.name[0], one.name[1]), exclusive=row.exclusive),
                "free": one.free,
                "total": one.total,
                "shared": one.shared,
            }
            for one in units
        ],
    }


def _unit(config: Config, request: Json) -> tuple[str, str]:
    """Return the unit whose room a node tells as its own: type, and key if known.

    Ganeti's nodes tell one: that of the template that is asked for. Where its disks are
    on no node of their own, it is that of disks that are: Ganeti's hail would find no
    room for those when a node is lost.
    """
    if request["type"] == "multi-allocate":
        request = request["instances"][0]
    template = request.get("disk_template", DISKLESS)
    if FACTS[template].node_disk:
        kind = FACTS[template].unit
        key = next((disk["sunit"][1] for disk in request["disks"]), "")
        return kind, key
    names = request.get("instances", [request["name"]] if "name" in request else [])
    known = [config.instance(one) for one in names if config.knows(Instance, one)]
    own = (disk for one in known for disk in config.disks_of(one))
    bound = (
        unit_of(config, disk)
        for disk in chain(own, config.all(Disk))
        if FACTS[disk.dev_type].node_disk
    )
    return next(bound, ("", ""))


def _memory(rows: htools.Fleet) -> dict[int, Json]:
    """Return what instances take of their nodes, by the place of the node."""
    found = {
        at: {"i_pri_memory": 0, "i_pri_up_memory": 0}
        for at, node in enumerate(rows.nodes)
        if node.units is not None
    }
    for row in rows.instances:
        if row.primary in found:
            found[row.primary]["i_pri_memory"] += row.mem
            up = row.mem if row.status == "running" else 0
            found[row.primary]["i_pri_up_memory"] += up
    return found


def _instance(config: Config, rows: htools.Fleet, row: htools.InstanceRow) -> Json:
    """Return an instance; one that is being made has no cards, and no OS."""
    known = config.knows(Instance, row.name)
    one = config.instance(row.name) if known else None
    homes = [at for at in (row.primary, row.secondary) if at >= 0]
    disks = config.disks_of(one) if one else []
    templates = [disk.dev_type for disk in disks] or [row.template] * len(row.disks)
    modes = [disk.mode for disk in disks] or ["rw"] * len(row.disks)
    group = config.group(rows.groups[rows.nodes[row.primary].group].uuid)
    return {
        **_sizes(row),
        "admin_state": _STATES.get(row.status, "up"),
        "os": one.os if one else "",
        "nodes": [rows.nodes[at].name for at in homes],
        "nics": _nics(config, group, one.nics) if one else [],
        "disks": [
            _disk(disk, template) | {"mode": mode}
            for disk, template, mode in zip(row.disks, templates, modes, strict=True)
        ],
        "disks_active": one.disks_active if one else True,
        "hypervisor": one.hypervisor if one else config.cluster.enabled_hypervisors[0],
    }


def _sizes(row: htools.InstanceRow) -> Json:
    return {
        "tags": row.tags,
        "vcpus": row.vcpus,
        "memory": row.mem,
        "spindle_use": row.spindle_use,
        "disk_template": row.template,
        "disk_space_total": row.disk,
    }


def _disk(disk: htools.Disk, template: str) -> Json:
    unit: Mapping[str, Any] = {}
    if disk.unit:
        unit = {"sunit": sunit((disk.unit[0], disk.unit[1]))}
    return {"dev_type": template, "size": disk.size, "spindles": disk.spindles, **unit}


def _nics(config: Config, group: NodeGroup, cards: Iterable[Nic]) -> list[Json]:
    return [_nic(config, group, one) for one in cards]


def _nic(config: Config, group: NodeGroup, nic: Nic) -> Json:
    params = nicparams.filled(config.cluster, group, nic)
    bridge = {"bridge": params.link} if params.mode == nicparams.BRIDGED else {}
    network = {"network": nic.network} if nic.network else {}
    return {
        "mac": nic.mac,
        "ip": nic.ip,
        "mode": params.mode,
        "link": params.link,
        **bridge,
        **network,
    }
