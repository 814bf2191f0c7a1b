# SPDX-License-Identifier: BSD-2-Clause
"""Small clusters to plan on."""

from collections.abc import Callable

import pytest

from moorage.htools import Disk, Fleet, Group, InstanceRow, NodeRow, Unit

Make = Callable[..., Fleet]


def node(name: str, free: int = 8192, **more: object) -> NodeRow:
    """Return a node of 8 GiB, without a system of its own."""
    row = {
        "mem_total": 8192.0,
        "mem_free": free,
        "disk_total": 102400.0,
        "disk_free": 102400,
        "cpus": 8.0,
        "cpus_own": 0,
        "spindles": 4,
    }
    return NodeRow(name=name, **(row | more))


def inst(name: str, at: int, mem: int = 1024, **more: object) -> InstanceRow:
    """Return an instance on shared storage."""
    size = int(str(more.pop("disk", 1024)))
    row = {"template": "sharedfile", "disks": (Disk(size),)}
    return InstanceRow(name, mem, size, 1, primary=at, **(row | more))


def fleet(nodes: list[NodeRow], insts: list[InstanceRow], **more: object) -> Fleet:
    """Return a fleet of one group whose nodes report what instances leave free."""
    used = [
        sum(one.mem for one in insts if one.primary == at) for at in range(len(nodes))
    ]
    rows = [
        NodeRow(
            **{name: getattr(row, name) for name in row._fields}
            | {"mem_free": int(row.mem_total) - used[at]}
        )
        for at, row in enumerate(nodes)
    ]
    group = Group("default", "uuid-1")
    return Fleet((group,), tuple(rows), tuple(insts), **more)


@pytest.fixture
def make() -> Make:
    return fleet


@pytest.fixture
def some_node() -> Callable[..., NodeRow]:
    return node


@pytest.fixture
def some_inst() -> Callable[..., InstanceRow]:
    return inst


@pytest.fixture
def unit() -> Callable[..., Unit]:
    def made(kind: str, key: str, free: int | None, total: int | None = 102400) -> Unit:
        shared = kind in ("sharedfile", "ext", "rbd", "gluster")
        return Unit((kind, key), free, total, shared=shared)

    return made


def message() -> dict:
    """Return a message that asks for a place on one of two nodes."""
    sizes = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count")
    low = dict.fromkeys((*sizes, "spindle-use"), 1)
    high = dict.fromkeys((*sizes, "spindle-use"), 10**6)
    node = {
        "group": "u", "offline": False, "drained": False, "vm_capable": True,
        "ndparams": {"exclusive_storage": False, "spindle_count": 1},
        "total_memory": 8192, "reserved_memory": 0, "free_memory": 8192,
        "total_disk": 90000, "free_disk": 90000, "total_cpus": 8,
        "reserved_cpus": 0, "free_spindles": 0, "tags": [],
    }  # fmt: skip
    group = {
        "name": "g", "alloc_policy": "preferred", "networks": [], "tags": [],
        "ipolicy": {
            "std": low, "minmax": [{"min": low, "max": high}],
            "disk-templates": ["ext"], "vcpu-ratio": 4.0, "spindle-ratio": 32.0,
        },
    }  # fmt: skip
    new = {
        "type": "allocate", "name": "new", "required_nodes": 1, "memory": 512,
        "disk_space_total": 1024, "disks": [{"size": 1024}], "vcpus": 1, "tags": [],
        "disk_template": "ext", "spindle_use": 1, "nics": [],
    }  # fmt: skip
    return {
        "cluster_tags": [], "enabled_hypervisors": ["kvm"], "nodegroups": {"u": group},
        "nodes": {"n1": node, "n2": node}, "instances": {}, "request": new,
    }  # fmt: skip


@pytest.fixture
def asked() -> Callable[[], dict]:
    return message
