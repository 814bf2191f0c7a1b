# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - draws
"""hscan beside Ganeti's: what it prints and writes about answers of RAPI."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import hail
import runs

from moorage.htools import sample
from moorage.htools.fleet import Fleet, InstanceRow, NodeRow
from moorage.htools.policy import Policy


def answers(fleet: Fleet, hypervisor: str = "xen-pvm") -> dict[str, Any]:
    """Return what RAPI would answer about a cluster, by the name of the request."""
    masters = [node.name for node in fleet.nodes if node.master]
    return {
        "groups": [
            {
                "name": group.name,
                "uuid": group.uuid,
                "alloc_policy": group.alloc_policy,
                "tags": list(group.tags),
                "ipolicy": _policy(group.policy),
            }
            for group in fleet.groups
        ],
        "nodes": [_node(fleet, node) for node in fleet.nodes],
        "instances": [_instance(fleet, inst) for inst in fleet.instances],
        "info": {
            "tags": list(fleet.tags),
            "master": masters[0] if masters else "",
            "default_hypervisor": hypervisor,
            "ipolicy": _policy(fleet.policy),
        },
    }


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "minmax": [
            {"min": hail.spec(low), "max": hail.spec(high)}
            for low, high in policy.ranges
        ],
        "std": hail.spec(policy.standard),
        "disk-templates": list(policy.templates),
        "vcpu-ratio": policy.vcpu_ratio,
        "spindle-ratio": policy.spindle_ratio,
    }


def _node(fleet: Fleet, node: NodeRow) -> dict[str, Any]:
    return {
        "name": node.name,
        "group.uuid": fleet.groups[node.group].uuid,
        "offline": node.offline,
        "drained": False,
        "vm_capable": True,
        "tags": list(node.tags),
        "ndparams": {
            "spindle_count": node.spindles,
            "exclusive_storage": node.exclusive,
            "cpu_speed": 1.0,
        },
        "mtotal": int(node.mem_total),
        "mnode": node.mem_own,
        "mfree": node.mem_free,
        "dtotal": int(node.disk_total),
        "dfree": node.disk_free,
        "ctotal": int(node.cpus),
        "cnos": node.cpus_own,
        "sptotal": node.spindles,
        "spfree": node.spindles_free,
    }


def _instance(fleet: Fleet, inst: InstanceRow) -> dict[str, Any]:
    second = [fleet.nodes[inst.secondary].name] if inst.secondary >= 0 else []
    return {
        "name": inst.name,
        "oper_ram": inst.mem if inst.status == "running" else None,
        "beparams": {
            "vcpus": inst.vcpus,
            "auto_balance": inst.auto_balance,
            "maxmem": inst.mem,
            "spindle_use": inst.spindle_use,
        },
        "disk_usage": inst.disk,
        "disk.sizes": [disk.size for disk in inst.disks],
        "disk.spindles": [disk.spindles for disk in inst.disks],
        "pnode": fleet.nodes[inst.primary].name,
        "snodes": second,
        "status": inst.status,
        "disk_template": inst.template,
        "tags": list(inst.tags),
        "forthcoming": inst.forthcoming,
    }


def write(folder: Path, fleet: Fleet, hypervisor: str = "xen-pvm") -> str:
    """Write the answers to a folder; return the name of the cluster."""
    folder.mkdir()
    for name, answer in answers(fleet, hypervisor).items():
        (folder / f"{name}.json").write_text(json.dumps(answer))
    return f"file://{folder}"


def _cluster(seed: int) -> Fleet:
    shape = runs.shape(seed)
    return sample.cluster(seed, replace(shape, exclusive=False))


def trial(seed: int, folder: Path) -> runs.Trial:
    """Compare on one to three clusters of a seed."""
    draw = Random(seed + 10**9)
    fleets = [_cluster(seed * 10 + at) for at in range(draw.randint(1, 3))]
    names = [
        write(folder / f"{seed}-{at}", fleet, draw.choice(("kvm", "xen-pvm")))
        for at, fleet in enumerate(fleets)
    ]
    if draw.random() < 0.2:
        names.append(f"file://{folder}/nowhere")
    words = draw.choice(([], ["--no-headers"], ["-p"]))
    words += draw.choice(([], ["--static-kvm-node-memory=1000"]))
    places = [folder / f"{seed}-ours", folder / f"{seed}-theirs"]
    for place in places:
        place.mkdir()
    mine, other = (
        _plain(run("hscan", [*words, "-d", str(place), *names]))
        for run, place in zip((runs.ours, runs.theirs), places, strict=True)
    )
    why = runs.first_difference(mine, other) or _files(*places)
    return runs.Trial([*words, *names], why)


def differ(seed: int, folder: Path) -> tuple[list[str], str]:
    """Return the command and the first difference, or ''."""
    found = trial(seed, folder)
    return found.words, found.why


def _plain(ran: runs.Ran) -> runs.Ran:
    """Return a run without the sentence about a file that is missing."""
    head, found, _ = ran[1].partition("Details:\n")
    return ran[0], head + found, ran[2]


def _files(mine: Path, other: Path) -> str:
    for path in other.iterdir():
        twin = mine / path.name
        found = twin.read_text() if twin.exists() else ""
        why = runs.first_difference((0, found, ""), (0, path.read_text(), ""))
        if why:
            return f"{path.name}: {why}"
    return "" if len(list(mine.iterdir())) == len(list(other.iterdir())) else "files"
