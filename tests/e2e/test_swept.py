# SPDX-License-Identifier: BSD-2-Clause
"""Every operation is crashed at every point, or stands here with the reason."""

from collections.abc import Iterator

import pytest

from moorage import ops
from moorage.jobs.operation import Operation
from moorage.testing.scenarios import MIRRORS, SCENARIOS, STORED

LOOKS = {
    *("OP_BACKUP_VERIFY", "OP_CLUSTER_VERIFY", "OP_CLUSTER_VERIFY_DISKS"),
    *("OP_CLUSTER_REDIST_CONF", "OP_EXT_STORAGE_DIAGNOSE", "OP_STORAGE_DIAGNOSE"),
    *("OP_INSTANCE_CONSOLE", "OP_INSTANCE_QUERY_DATA", "OP_NODE_QUERYVOLS"),
    *("OP_NODE_QUERY_STORAGE", "OP_NODE_TRY_ACCELERATOR", "OP_OS_DIAGNOSE"),
    *("OP_BACKUP_PREPARE", "OP_TAGS_GET", "OP_TAGS_SEARCH", "OP_TEST_DELAY"),
    *("OP_TEST_ALLOCATOR", "OP_CLUSTER_FOREIGN_GUESTS", "OP_GROUP_CPU_MODELS"),
}
"""They change nothing."""
SUBMITS = {
    *("OP_GROUP_EVACUATE", "OP_INSTANCE_CHANGE_GROUP", "OP_INSTANCE_MOVE"),
    *("OP_INSTANCE_MULTI_ALLOC", "OP_NODE_EVACUATE", "OP_NODE_FAILOVER"),
    "OP_NODE_MIGRATE",
}
"""They submit jobs of operations that are crashed."""
ELSEWHERE = {
    "OP_CLUSTER_ACTIVATE_MASTER_IP": "e2e/test_master_address.py",
    "OP_CLUSTER_DEACTIVATE_MASTER_IP": "e2e/test_master_address.py",
    "OP_CLUSTER_RENEW_CRYPTO": "ops/test_renew_crypto.py",
    "OP_INSTANCE_RESTART_GUEST": "ops/test_adopted_mirrors.py",
    "OP_NODE_ADD": "e2e/test_joining.py",
    "OP_NODE_RENEW_CRYPTO": "ops/test_renew_crypto.py",
}
"""Sweeps of their own."""
ONE_COMMIT = {"OP_CLUSTER_REPAIR_DISK_SIZES", "OP_GROUP_RENAME"}
"""One commit is all that they do. Devices of another size, and a disk's story with the
name that its group had before, would be differences to every other request."""
ONE_CALL = {
    *("OP_NODE_POWERCYCLE", "OP_OOB_COMMAND", "OP_REPAIR_NODE_STORAGE"),
    *("OP_NODE_SHUTDOWN_ORPHAN", "OP_RESTRICTED_COMMAND", "OP_INSTANCE_ADOPT_GUEST"),
    *("OP_CLUSTER_COMMAND", "OP_CLUSTER_COPY_FILE"),
}
"""One order to a node, at most to be given again; nothing is recorded before it.
A guest that is adopted has its disks open: to attach them changes nothing."""


def every(kind: type[Operation]) -> Iterator[type[Operation]]:
    """Yield all operations that have a name of their own."""
    for one in kind.__subclasses__():
        yield from every(one)
        if one.__module__.startswith(ops.__name__) and getattr(one, "op_id", ""):
            yield one


NAMES = sorted({one.op_id for one in every(Operation)})


@pytest.mark.parametrize("name", NAMES)
def test_each_operation_is_crashed_or_says_why_not(name: str) -> None:
    swept = {one.op_id for one in (*SCENARIOS, *MIRRORS, *STORED)}
    excused = LOOKS | SUBMITS | ONE_COMMIT | ONE_CALL | ELSEWHERE.keys()
    assert (name in swept) != (name in excused)
