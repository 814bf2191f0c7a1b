# SPDX-License-Identifier: BSD-2-Clause
"""Hooks: which scripts run where, what they are told, and what their failing does."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import HookFailed
from moorage.ops import OPERATIONS
from moorage.ops.hooks import OWN
from moorage.testing.cluster import ClusterBuilder, SimCluster

Ran = list[tuple[str, str, Mapping[str, str]]]
"""Node, phase and variables of each script, in the order of their ends."""


_LOOKS = "it only looks"
_AS_GANETI = "Ganeti has none for it"
WITHOUT: dict[str, str] = {
    "OP_BACKUP_PREPARE": _LOOKS,
    "OP_BACKUP_REMOVE": _AS_GANETI,
    "OP_BACKUP_VERIFY": _LOOKS,
    "OP_CLUSTER_ACTIVATE_MASTER_IP": _AS_GANETI,
    "OP_CLUSTER_COMMAND": _AS_GANETI,
    "OP_CLUSTER_COPY_FILE": _AS_GANETI,
    "OP_CLUSTER_DEACTIVATE_MASTER_IP": _AS_GANETI,
    "OP_CLUSTER_REDIST_CONF": _AS_GANETI,
    "OP_CLUSTER_RENEW_CRYPTO": _AS_GANETI,
    "OP_CLUSTER_FOREIGN_GUESTS": _LOOKS,
    "OP_CLUSTER_VERIFY_DISKS": _AS_GANETI,
    "OP_CLUSTER_REPAIR_DISK_SIZES": _AS_GANETI,
    "OP_EXT_STORAGE_CERTIFY": _LOOKS,
    "OP_EXT_STORAGE_DIAGNOSE": _LOOKS,
    "OP_GROUP_ASSIGN_NODES": _AS_GANETI,
    "OP_GROUP_CPU_MODELS": _LOOKS,
    "OP_INSTANCE_ACTIVATE_DISKS": _AS_GANETI,
    "OP_INSTANCE_ADOPT_GUEST": "its guest runs on as it is",
    "OP_INSTANCE_CONSOLE": _LOOKS,
    "OP_INSTANCE_DEACTIVATE_DISKS": _AS_GANETI,
    "OP_INSTANCE_MULTI_ALLOC": "its jobs have those of an instance",
    "OP_INSTANCE_QUERY_DATA": _LOOKS,
    "OP_NODE_EVACUATE": _AS_GANETI,
    "OP_NODE_FAILOVER": _AS_GANETI,
    "OP_NODE_MODIFY_STORAGE": _AS_GANETI,
    "OP_NODE_POWERCYCLE": _AS_GANETI,
    "OP_NODE_QUERYVOLS": _LOOKS,
    "OP_NODE_QUERY_STORAGE": _LOOKS,
    "OP_NODE_RENEW_CRYPTO": _AS_GANETI,
    "OP_NODE_SHUTDOWN_ORPHAN": "it is about no instance that hooks could know",
    "OP_NODE_TRY_ACCELERATOR": _LOOKS,
    "OP_OOB_COMMAND": _AS_GANETI,
    "OP_OS_DIAGNOSE": _LOOKS,
    "OP_REPAIR_NODE_STORAGE": _AS_GANETI,
    "OP_RESTRICTED_COMMAND": _AS_GANETI,
    "OP_STORAGE_DIAGNOSE": _LOOKS,
    "OP_TAGS_DEL": _AS_GANETI,
    "OP_TAGS_GET": _LOOKS,
    "OP_TAGS_SEARCH": _LOOKS,
    "OP_TAGS_SET": _AS_GANETI,
    "OP_TEST_ALLOCATOR": _LOOKS,
    "OP_TEST_DELAY": _AS_GANETI,
}
"""Why the others have none of their own."""
APART = ("OP_DISK_", "OP_STORAGE_")
"""What the names of operations begin with that Ganeti does not know."""


async def hooked(directory: Path, *paths: str) -> tuple[SimCluster, Ran]:
    """Return a cluster with hooks on every node, which note that they run."""
    builder = (
        ClusterBuilder()
        .disk("root", mode="rw")
        .disk("other")
        .instance("web1", "node2", ("root",), tags=("blue",))
    )
    cluster = SimCluster(directory)
    cluster.hooked = True
    await cluster.make(builder)
    for volume in ("vol-root", "vol-other"):
        cluster.nodes.san.volumes[volume] = {"size": 1024, "provider": "san"}
    ran: Ran = []
    for name, node in cluster.nodes.nodes.items():
        for path in paths:
            for phase in ("pre", "post"):
                node.machine.hooks[f"{path}-{phase}.d"] = {
                    "10note": _noting(ran, name, phase)
                }
    return cluster, ran


def _noting(ran: Ran, node: str, phase: str) -> Any:
    def hook(env: Mapping[str, str]) -> str:
        ran.append((node, phase, env))
        return ""

    return hook


def fail(cluster: SimCluster, node: str, directory: str) -> None:
    scripts = cluster.nodes.nodes[node].machine.hooks.setdefault(directory, {})
    scripts["20fail"] = lambda _: "exited with exit code 3: the rack is full"


def test_every_operation_has_hooks_or_a_reason() -> None:
    untold = [op for op in OPERATIONS if op not in OWN and op not in WITHOUT]
    assert [op for op in untold if not op.startswith(APART)] == []
    assert OWN.keys() & WITHOUT.keys() == set()


async def test_hooks_run_on_the_master_and_the_nodes_of_the_instance(
    tmp_path: Path,
) -> None:
    cluster, ran = await hooked(tmp_path, "instance-start")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    where = [(node, phase) for node, phase, _ in ran]
    assert sorted(where[:2]) == [("node1", "pre"), ("node2", "pre")]
    assert sorted(where[2:]) == [("node1", "post"), ("node2", "post")]
    env = ran[0][2]
    known = {
        "GANETI_OP_CODE": "OP_INSTANCE_STARTUP",
        "GANETI_OBJECT_TYPE": "INSTANCE",
        "GANETI_HOOKS_PATH": "instance-start",
        "GANETI_HOOKS_PHASE": "pre",
        "GANETI_HOOKS_VERSION": "2",
        "GANETI_CLUSTER": "test",
        "GANETI_MASTER": "node1",
        "GANETI_OP_TARGET": "web1",
        "GANETI_INSTANCE_NAME": "web1",
        "GANETI_INSTANCE_PRIMARY": "node2",
        "GANETI_INSTANCE_STATUS": "down",
        "GANETI_INSTANCE_TAGS": "blue",
        "GANETI_INSTANCE_DISK_COUNT": "1",
        "GANETI_INSTANCE_DISK0_NAME": "root",
        "GANETI_INSTANCE_DISK0_SIZE": "1024",
        "GANETI_INSTANCE_DISK0_PROVIDER": "san",
        "GANETI_INSTANCE_DISK0_ID": "vol-root",
        "GANETI_INSTANCE_DISK0_TEMPLATE_NAME": "ext",
        "GANETI_FORCE": "False",
    }
    assert {name: env.get(name) for name in known} == known
    after = ran[-1][2]
    assert after["GANETI_INSTANCE_STATUS"] == "down"
    assert after["GANETI_POST_INSTANCE_STATUS"] == "up"
    await cluster.stop()


async def test_an_instance_that_is_made_is_described_before_it_is_there(
    tmp_path: Path,
) -> None:
    cluster, ran = await hooked(tmp_path, "instance-add")
    new: dict[str, Any] = {"size": 64, "name": "d", "provider": "san"}
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web2",
        pnode="node3",
        disk_template="ext",
        disks=[new],
        beparams={"memory": 256},
    )
    assert {(node, phase) for node, phase, _ in ran} == {
        (node, phase) for node in ("node1", "node3") for phase in ("pre", "post")
    }
    env = ran[0][2]
    assert env["GANETI_ADD_MODE"] == "create"
    assert env["GANETI_INSTANCE_PRIMARY"] == "node3"
    assert env["GANETI_INSTANCE_MAXMEM"] == "256"
    assert env["GANETI_INSTANCE_DISK0_NAME"] == "d"
    await cluster.stop()


async def test_a_hook_that_fails_before_stops_the_job_in_a_sentence(
    tmp_path: Path,
) -> None:
    cluster, _ = await hooked(tmp_path)
    fail(cluster, "node2", "instance-start-pre.d")
    before = cluster.config
    error = await cluster.refused("OP_INSTANCE_STARTUP", instance_name="web1")
    assert isinstance(error, HookFailed)
    assert error.message == (
        "hook instance-start-pre.d/20fail on node node2: exited with exit code 3: "
        "the rack is full"
    )
    assert cluster.config is before
    assert cluster.engine.locks.rows() == []
    assert {verb for _, verb in cluster.nodes.calls} & {"guest.start"} == set()
    await cluster.stop()


async def test_a_hook_that_fails_after_is_a_line_in_the_log(tmp_path: Path) -> None:
    cluster, ran = await hooked(tmp_path, "instance-start")
    fail(cluster, "node2", "instance-start-post.d")
    number = await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web1")
    job = await cluster.finished(number)
    assert job.status == "success"
    (told,) = [entry[3] for entry in job.ops[0].log if "Warning" in str(entry[3])]
    assert "hook instance-start-post.d/20fail on node node2" in str(told)
    assert len(ran) == 4
    await cluster.stop()


async def test_a_node_that_is_silent_or_off_has_no_hooks(tmp_path: Path) -> None:
    cluster, ran = await hooked(tmp_path, "node-modify", "cluster-verify")
    cluster.nodes.cut_power("node3")
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    assert [(node, phase) for node, phase, _ in ran] == [
        ("node1", "pre"),
        ("node1", "post"),
    ]
    assert ran[0][2]["GANETI_OFFLINE"] == "True"
    ran.clear()
    await cluster.run("OP_CLUSTER_VERIFY")
    assert sorted((node, phase) for node, phase, _ in ran) == [
        ("node1", "post"),
        ("node2", "post"),
    ]
    assert "GANETI_NODE_TAGS_node2" in ran[0][2]
    await cluster.stop()


@pytest.mark.parametrize("ignored", [False, True])
async def test_a_hook_of_verify_is_a_check_of_its_own(
    tmp_path: Path, *, ignored: bool
) -> None:
    cluster, _ = await hooked(tmp_path, "cluster-verify")
    fail(cluster, "node2", "cluster-verify-post.d")
    codes = ("ENODEHOOKS",) if ignored else ()
    found = await cluster.run("OP_CLUSTER_VERIFY", ignore_errors=codes)
    (told,) = [
        one
        for one in found["warnings" if ignored else "errors"]
        if one["ecode"] == "ENODEHOOKS"
    ]
    assert told["object"] == "node node2"
    said = "exited with exit code 3: the rack is full"
    assert told["message"] == f"hook cluster-verify-post.d/20fail: {said}"
    await cluster.stop()


@pytest.mark.parametrize(("there", "ending"), [(True, "success"), (False, "error")])
async def test_global_hooks_run_for_everything_and_learn_how_it_ended(
    tmp_path: Path, *, there: bool, ending: str
) -> None:
    cluster, ran = await hooked(tmp_path, "global")
    await cluster.run("OP_DISK_RENAME", disk="other", new_name="another")
    if not there:
        del cluster.nodes.san.volumes["vol-root"]
    number = await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web1")
    assert (await cluster.finished(number)).status == ending
    told = [(env["GANETI_OP_CODE"], env.get("GANETI_POST_STATUS")) for *_, env in ran]
    assert {node for node, *_ in ran} == {"node1"}
    assert told == [
        ("OP_DISK_RENAME", None),
        ("OP_DISK_RENAME", "success"),
        ("OP_INSTANCE_STARTUP", None),
        ("OP_INSTANCE_STARTUP", ending),
    ]
    await cluster.stop()


async def test_a_job_that_is_cancelled_while_a_hook_runs_does_nothing(
    tmp_path: Path,
) -> None:
    cluster, _ = await hooked(tmp_path, "instance-start")
    cluster.nodes.hold = asyncio.Event()
    number = await cluster.submit("OP_TEST_DELAY", duration=0)
    for _ in range(1000):
        if ("node1", "hooks.run") in cluster.nodes.calls:
            break
        await asyncio.sleep(0)
    done, _ = await cluster.engine.cancel(number)
    cluster.nodes.hold.set()
    job = await cluster.finished(number)
    assert (done, job.status) == (True, "canceled")
    assert ("node1", "delay") not in cluster.nodes.calls
    await cluster.stop()


async def test_a_node_whose_hooks_take_long_is_named_and_no_step_with_it(
    tmp_path: Path,
) -> None:
    """None has begun yet, or all are done."""
    cluster, ran = await hooked(tmp_path, "instance-start")
    cluster.engine.queue._patience = 0.0
    call = cluster.nodes.call

    async def slow(node: Any, verb: Any, *more: Any) -> Any:
        if verb.verb == "hooks.run":
            await asyncio.sleep(0.01)
        return await call(node, verb, *more)

    cluster.nodes.call = slow  # type: ignore[method-assign]
    number = await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web1")
    (op,) = (await cluster.finished(number)).ops
    assert (op.status, {phase for _, phase, _ in ran}) == ("success", {"pre", "post"})
    told = {entry[3] for entry in op.log}
    assert told >= {f"Still waiting for node node{n}" for n in (1, 2)}
    assert "Still waiting for node node2: start web1 on node2" in told
    await cluster.stop()
