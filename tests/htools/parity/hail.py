# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - draws
"""hail beside Ganeti's: the answer to a request of each kind."""

import json
from pathlib import Path
from random import Random
from typing import Any

import runs

from moorage.htools.fleet import Fleet, Group, InstanceRow, NodeRow
from moorage.htools.policy import Spec

_FORGETFUL = "exclusive storage: Ganeti forgets the other groups after the first one"
_OTHERWISE = {
    "change-group": "Ganeti counts the instance in both groups",
    "allocate-secondary": "Ganeti checks N+1 as if nothing were mirrored",
}
"""Differences under the N+1 check that we mean; see docs/htools.md."""
STATES = {"running": "up", "ERROR_up": "up", "ADMIN_offline": "offline"}


def spec(one: Spec) -> dict[str, int]:
    """Return a size as messages have it."""
    return {
        "memory-size": one.memory,
        "cpu-count": one.cpus,
        "disk-size": one.disk,
        "disk-count": one.disks,
        "nic-count": one.nics,
        "spindle-use": one.spindles,
    }


def _group(group: Group) -> dict[str, Any]:
    policy = group.policy
    return {
        "name": group.name,
        "alloc_policy": group.alloc_policy,
        "networks": list(group.networks),
        "tags": list(group.tags),
        "ipolicy": {
            "std": spec(policy.standard),
            "minmax": [{"min": spec(a), "max": spec(b)} for a, b in policy.ranges],
            "disk-templates": list(policy.templates),
            "vcpu-ratio": policy.vcpu_ratio,
            "spindle-ratio": policy.spindle_ratio,
        },
    }


def _node(fleet: Fleet, node: NodeRow, *, drained: bool) -> dict[str, Any]:
    found = {
        "offline": node.offline and not drained,
        "drained": node.offline and drained,
        "vm_capable": True,
        "group": fleet.groups[node.group].uuid,
        "tags": list(node.tags),
        "ndparams": {
            "exclusive_storage": node.exclusive,
            "spindle_count": node.spindles,
        },
        "total_memory": int(node.mem_total),
        "reserved_memory": node.mem_own,
        "free_memory": node.mem_free,
        "total_disk": int(node.disk_total),
        "free_disk": node.disk_free,
        "total_cpus": int(node.cpus),
        "reserved_cpus": node.cpus_own,
        "free_spindles": node.spindles_free,
    }
    if node.exclusive:
        found["total_spindles"] = node.spindles
    return found


def instance(inst: InstanceRow) -> dict[str, Any]:
    """Return what requests and residents have in common."""
    return {
        "disk_space_total": inst.disk,
        "disks": [
            {"size": d.size} | ({"spindles": d.spindles} if d.spindles else {})
            for d in inst.disks
        ],
        "memory": inst.mem,
        "vcpus": inst.vcpus,
        "tags": list(inst.tags),
        "disk_template": inst.template,
        "spindle_use": inst.spindle_use,
        "nics": [],
        "admin_state": STATES.get(inst.status, "down"),
        "forthcoming": inst.forthcoming,
    }


def message(fleet: Fleet, request: dict[str, Any], *, drained: bool) -> dict[str, Any]:
    """Return a message to the allocator."""
    names = [node.name for node in fleet.nodes]
    return {
        "cluster_tags": list(fleet.tags),
        "enabled_hypervisors": ["xen-pvm"],
        "nodegroups": {group.uuid: _group(group) for group in fleet.groups},
        "nodes": {n.name: _node(fleet, n, drained=drained) for n in fleet.nodes},
        "instances": {
            inst.name: instance(inst)
            | {"nodes": [names[at] for at in (inst.primary, inst.secondary) if at >= 0]}
            for inst in fleet.instances
        },
        "request": request,
    }


def request(draw: Random, fleet: Fleet) -> dict[str, Any]:
    """Return a random request."""
    kind = draw.choice(
        ("allocate",) * 4
        + ("multi-allocate", "relocate", "node-evacuate", "node-evacuate")
        + ("change-group", "allocate-secondary")
    )
    some = draw.sample(fleet.instances, draw.randint(1, min(4, len(fleet.instances))))
    names = [inst.name for inst in some]
    if kind == "allocate":
        return _new(draw, fleet, 0) | {"type": kind}
    if kind == "multi-allocate":
        new = [_new(draw, fleet, at) for at in range(draw.randint(1, 4))]
        return {"type": kind, "instances": new}
    if kind == "relocate":
        inst = some[0]
        leave = inst.secondary if inst.template == "drbd" else inst.primary
        return {
            "type": kind,
            "name": inst.name,
            "required_nodes": 1,
            "relocate_from": [fleet.nodes[leave].name],
        }
    if kind == "node-evacuate":
        mode = draw.choice(("primary-only", "secondary-only", "all"))
        return {"type": kind, "instances": names, "evac_mode": mode}
    if kind == "change-group":
        groups = [g.uuid for g in fleet.groups if draw.random() < 0.4]
        return {"type": kind, "instances": names, "target_groups": groups}
    return {"type": kind, "name": names[0]}


def _new(draw: Random, fleet: Fleet, at: int) -> dict[str, Any]:
    like = draw.choice(fleet.instances)
    new = instance(like) | {"name": f"new{at}", "admin_state": "up"}
    new["memory"] = draw.choice((128, 512, 1024, 4096))
    new["required_nodes"] = 2 if like.template == "drbd" else 1
    if draw.random() < 0.2:
        new["restrict-to-nodes"] = [n.name for n in fleet.nodes if draw.random() < 0.7]
    if draw.random() < 0.2:
        new["group_name"] = draw.choice(fleet.groups).name
    return new


def _plain(text: str) -> Any:
    answer = json.loads(text) if text else None
    if answer and not answer["success"] and "allocate" not in text:
        answer["info"] = ""  # the words about groups that were tried differ
    if answer and "no groups for evacuation" in text:
        # They print the groups with all their fields there.
        answer["result"] = [answer["result"][0], [x[0] for x in answer["result"][1]]]
    return answer


def trial(seed: int, folder: Path, *, checks: bool) -> runs.Trial:
    """Compare on the cluster and the request of a seed.

    Parameters
    ----------
    checks
        Whether the N+1 check is on.
    """
    fleet = runs.cluster(seed)
    draw = Random(seed + 10**9)
    asked = request(draw, fleet)
    if checks:
        asked.pop("group_name", None)
    if checks or asked["type"] == "allocate-secondary":
        # Ganeti considers offline nodes there.
        nodes = tuple(node._replace(offline=False) for node in fleet.nodes)
        fleet = fleet.replaced(nodes=nodes)
    dedicated = all(node.exclusive for node in fleet.nodes)
    if dedicated and asked["type"] == "multi-allocate" and len(fleet.groups) > 1:
        return runs.Trial(skipped=_FORGETFUL)
    path = folder / "message.json"
    path.write_text(json.dumps(message(fleet, asked, drained=draw.random() < 0.5)))
    words = [str(path)] if checks else ["--no-capacity-checks", str(path)]
    if draw.random() < 0.1:
        words.insert(0, "--ignore-soft-errors")
    mine, other = runs.ours("hail", words), runs.theirs("hail", words)
    if mine[::2] == other[::2] and _plain(mine[1]) == _plain(other[1]):
        return runs.Trial(words)
    if checks and asked["type"] in _OTHERWISE:
        return runs.Trial(
            words, skipped=f"{asked['type']}: {_OTHERWISE[asked['type']]}"
        )
    return runs.Trial(words, f"{asked['type']}\n  {mine}\n  {other}")
