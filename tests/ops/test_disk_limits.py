# SPDX-License-Identifier: BSD-2-Clause
"""What a guest may ask of its disks: by cluster, group and disk, also while it runs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

SLOW = {"total_iops_sec": 100}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    for way in ("SHUTDOWN", "STARTUP"):  # so nodes know who uses its disks
        await cluster.run(f"OP_INSTANCE_{way}", instance_name="web1")
    yield cluster
    await cluster.stop()


def told(cluster: SimCluster, disk: str) -> dict[str, int]:
    """Return what the hypervisor of a disk's guest was told last."""
    found = cluster.config.disk(disk)
    owner = cluster.config.owner(found)
    assert owner
    guest = cluster.nodes.san.guests[f"{owner.primary_node} {owner.uuid}"]
    limits: dict[str, int] = guest["limits"][found.uuid]
    return limits


async def preset(cluster: SimCluster, **params: Any) -> None:
    given = {"diskparams": {"ext": params, "sharedfile": params}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", **given)


async def own(cluster: SimCluster, **params: Any) -> None:
    mods = [["modify", "root1", params]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", disks=mods)


async def test_the_nearest_limit_holds_and_zero_is_none(cluster: SimCluster) -> None:
    await preset(cluster, **SLOW)
    assert told(cluster, "root1") == told(cluster, "data1") == SLOW
    limits = {"total_iops_sec": "200", "total_bytes_sec": "1000000"}
    group = {"diskparams": {"ext": limits, "sharedfile": limits}}
    await cluster.run("OP_GROUP_SET_PARAMS", group_name="default", **group)
    wide = {"total_iops_sec": 200, "total_bytes_sec": 1_000_000}
    assert told(cluster, "root1") == wide
    await own(cluster, total_iops_sec=0)
    assert told(cluster, "root1") == {"total_bytes_sec": 1_000_000}
    assert told(cluster, "data1") == wide
    await own(cluster, total_iops_sec="default")
    assert told(cluster, "root1") == wide


async def test_a_disk_named_by_itself_is_limited_at_once(cluster: SimCluster) -> None:
    given = {"disk": "root1", "params": SLOW}
    await cluster.run("OP_DISK_SET_PARAMS", **given)
    assert told(cluster, "root1") == SLOW
    given["params"] = {"total_iops_sec": "default"}
    await cluster.run("OP_DISK_SET_PARAMS", **given)
    assert told(cluster, "root1") == {}


async def test_the_limits_of_another_group_hold_when_its_node_goes_there(
    cluster: SimCluster,
) -> None:
    web1 = cluster.config.instance("web1")
    node = cluster.config.node(web1.primary_node).name
    given = {"diskparams": {"ext": SLOW, "sharedfile": SLOW}}
    await cluster.run("OP_GROUP_ADD", group_name="rack2", **given)
    there = {"group_name": "rack2", "nodes": [node], "force": True}
    await cluster.run("OP_GROUP_ASSIGN_NODES", **there)
    assert told(cluster, "root1") == SLOW


@pytest.mark.parametrize(
    ("op_id", "named"),
    [
        ("OP_CLUSTER_SET_PARAMS", {}),
        ("OP_GROUP_SET_PARAMS", {"group_name": "default"}),
    ],
)
async def test_a_disk_that_a_job_has_is_told_when_it_is_done(
    cluster: SimCluster, op_id: str, named: dict[str, str]
) -> None:
    """Told meanwhile, its node would refuse what that job asks next as too late."""
    there, go_on = asyncio.Event(), asyncio.Event()

    async def point(name: str) -> None:
        if name.startswith("before grow disk"):
            there.set()
            await go_on.wait()

    cluster.extra_point = point
    grow = await cluster.submit("OP_DISK_GROW", disk="root1", amount=64)
    await asyncio.wait_for(there.wait(), 10)
    given = {"diskparams": {"ext": SLOW, "sharedfile": SLOW}}
    change = await cluster.submit(op_id, **named, **given)
    await asyncio.sleep(0.1)
    assert told(cluster, "root1") == {}
    go_on.set()
    for number in (grow, change):
        assert [op.error for op in (await cluster.finished(number)).ops] == [None]
    assert told(cluster, "root1") == SLOW


async def test_limits_go_along_wherever_the_guest_goes(cluster: SimCluster) -> None:
    await own(cluster, **SLOW)
    web1 = {"instance_name": "web1"}
    await cluster.run("OP_INSTANCE_SHUTDOWN", **web1)
    await cluster.run("OP_INSTANCE_STARTUP", **web1)
    assert told(cluster, "root1") == SLOW
    assert told(cluster, "data1") == {}
    await cluster.run("OP_INSTANCE_MIGRATE", **web1)
    assert told(cluster, "root1") == SLOW
    await preset(cluster, total_bytes_sec=5)
    await cluster.run("OP_DISK_DETACH", disk="data1")
    await cluster.run("OP_DISK_ATTACH", disk="data1", **web1)
    assert told(cluster, "data1") == {"total_bytes_sec": 5}


async def test_the_limits_of_the_new_storage_hold_at_once(cluster: SimCluster) -> None:
    given = {"diskparams": {"ext": SLOW}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", **given)
    await cluster.run(
        "OP_DISK_CONVERT", disk="root1", disk_template="ext", provider="san"
    )
    assert told(cluster, "root1") == SLOW
    given["diskparams"]["ext"] = {"total_iops_sec": 0}
    await cluster.run("OP_CLUSTER_SET_PARAMS", **given)
    assert told(cluster, "root1") == {}


async def test_scripts_hear_nothing_of_limits(cluster: SimCluster) -> None:
    """A provider lists its own parameters; these are its guests' hypervisor's."""
    await cluster.run(
        "OP_DISK_ADD",
        name="new",
        disk_template="ext",
        provider="san",
        size=8,
        params={"total_iops_sec": "7"},
    )
    assert cluster.config.disk("new").params["total_iops_sec"] == 7
    volume = cluster.nodes.san.volumes[cluster.config.disk("new").volume]
    assert "iops" not in str(volume).lower()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"total_iops_sec": -1}, "'total_iops_sec' is a number from 0 to 2147483648"),
        ({"total_bytes_sec": "1M"}, "'total_bytes_sec' is a number from 0 to 1099511"),
        ({"tier": "fast"}, "only access and limits can be preset for template 'ext'"),
    ],
)
async def test_what_is_no_limit_is_refused(
    cluster: SimCluster, given: dict[str, Any], said: str
) -> None:
    refused = await cluster.refused("OP_CLUSTER_SET_PARAMS", diskparams={"ext": given})
    assert said in refused.message
    assert "ext" not in cluster.config.cluster.diskparams
