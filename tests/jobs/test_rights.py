# SPDX-License-Identifier: BSD-2-Clause
"""Who may ask for what: roles of operations, and parameters that are root's."""

from typing import Any

import pytest

from moorage.errors import Forbidden, MoorageError
from moorage.jobs import rights
from moorage.model.caller import Caller, Role
from moorage.ops import parse
from moorage.testing.cluster import SimCluster

MAKE = {"instance_name": "new", "os_type": "debian", "mode": "create"}
EXT = {"disk_template": "ext", "provider": "san", "size": 8}
WEB = {"instance_name": "web"}
ROOTS: list[tuple[str, dict[str, Any], str]] = [
    ("OP_DISK_ADD", {**EXT, "adopt": "/dev/sda"}, "adopt"),
    ("OP_DISK_ADD", {**EXT, "params": {"dir": "/etc"}}, "dir"),
    ("OP_DISK_ADD", {**EXT, "params": {"reuse_data": "True"}}, "reuse_data"),
    ("OP_DISK_ADD", {**EXT, "params": {"Reuse_Data": "True"}}, "reuse_data"),
    ("OP_DISK_ADD", {**EXT, "params": {"DIR": "/etc"}}, "dir"),
    (
        "OP_INSTANCE_SET_PARAMS",
        {**WEB, "disks": [["add", -1, {"Reuse_Data": "True"}]]},
        "reuse_data",
    ),
    ("OP_INSTANCE_CREATE", {**MAKE, "hvparams": {"kvm_extra": "-x"}}, "kvm_extra"),
    ("OP_INSTANCE_CREATE", {**MAKE, "disks": [{"adopt": "lv"}]}, "adopt"),
    ("OP_INSTANCE_STARTUP", {**WEB, "hvparams": {"kernel_path": "/x"}}, "kernel_path"),
    (
        "OP_INSTANCE_SET_PARAMS",
        {**WEB, "hvparams": {"security_model": "none"}},
        "security_model",
    ),
    (
        "OP_INSTANCE_SET_PARAMS",
        {**WEB, "disks": [["add", -1, {"adopt": "/dev/sda"}]]},
        "adopt",
    ),
    (
        "OP_CLUSTER_SET_PARAMS",
        {"hvparams": {"kvm": {"kvm_extra": "-x"}}},
        "kvm_extra",
    ),
    (
        "OP_CLUSTER_SET_PARAMS",
        {"os_hvp": {"debian": {"kvm": {"initrd_path": "/etc/shadow"}}}},
        "initrd_path",
    ),
    ("OP_CLUSTER_SET_PARAMS", {"file_storage_dir": "/etc"}, "file_storage_dir"),
    ("OP_INSTANCE_CREATE", {**MAKE, "iallocator": "mine"}, "iallocator"),
    ("OP_NODE_EVACUATE", {"node_name": "node1", "iallocator": "mine"}, "iallocator"),
    ("OP_CLUSTER_SET_PARAMS", {"default_iallocator": "mine"}, "default_iallocator"),
    ("OP_STORAGE_POOL_ADD", {"pool_name": "p", "params": {"dir": "/etc"}}, "dir"),
]
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("OP_DISK_ADD", {**EXT, "params": {"tier": "gold"}}),
    ("OP_INSTANCE_CREATE", {**MAKE, "hvparams": {"acpi": True, "vga": "std"}}),
    ("OP_INSTANCE_CREATE", {**MAKE, "iallocator": "hail"}),
    ("OP_INSTANCE_CREATE", {**MAKE, "iallocator": "."}),
    ("OP_INSTANCE_SET_PARAMS", {**WEB, "hvparams": {"kvm_extra": "default"}}),
    ("OP_INSTANCE_SET_PARAMS", {**WEB, "disks": [["add", -1, {"size": 8}]]}),
]


def allowed(role: Role, op_id: str, fields: dict[str, Any]) -> bool:
    operation = parse({"OP_ID": op_id, **fields})
    try:
        rights.check(operation, Caller("anna", "rapi", role))
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(("op_id", "fields", "name"), ROOTS)
async def test_what_lets_root_act_is_roots(
    cluster: SimCluster, op_id: str, fields: dict[str, Any], name: str
) -> None:
    ask = [{"OP_ID": op_id, **fields}]
    with pytest.raises(Forbidden, match=f"anna by rapi may not set {name}: "):
        await cluster.engine.submit(ask, Caller("anna", "rapi", Role.WRITE))
    assert cluster.engine.jobs == {}
    assert allowed(Role.ROOT, op_id, fields)


@pytest.mark.parametrize(("op_id", "fields"), OTHERS)
def test_everything_else_may_be_set(op_id: str, fields: dict[str, Any]) -> None:
    assert allowed(Role.WRITE, op_id, fields)


TAKES: list[tuple[str, dict[str, Any], Role]] = [
    ("OP_CLUSTER_VERIFY", {}, Role.READ),
    ("OP_INSTANCE_STARTUP", WEB, Role.OPERATE),
    ("OP_INSTANCE_MIGRATE", WEB, Role.OPERATE),
    ("OP_DISK_ADD", {**EXT, "name": "new"}, Role.WRITE),
    ("OP_INSTANCE_REMOVE", WEB, Role.WRITE),
    ("OP_CLUSTER_RENEW_CRYPTO", {}, Role.ROOT),
]


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(("op_id", "fields", "takes"), TAKES)
def test_who_has_too_low_a_role_is_refused(
    op_id: str, fields: dict[str, Any], takes: Role, role: Role
) -> None:
    assert allowed(role, op_id, fields) is (role >= takes)


async def test_a_job_that_holds_one_is_refused_whole(cluster: SimCluster) -> None:
    ops = [
        {"OP_ID": "OP_INSTANCE_STARTUP", **WEB},
        {"OP_ID": ROOTS[0][0], **ROOTS[0][1]},
    ]
    with pytest.raises(MoorageError, match="may not set adopt"):
        await cluster.engine.submit(ops, Caller("anna", "rapi", Role.WRITE))
    assert cluster.engine.jobs == {}
