# SPDX-License-Identifier: BSD-2-Clause
"""Many requests at once, in any order, while masters die: what always holds, holds."""

import random
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import from_json
from moorage.model import Disk, Instance
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster
from moorage.testing.state_snapshot import epochs, picture

NODES = ("node1", "node2", "node3")
INSTANCES = ("web1", "web2", "web3", "web4")
DISKS = tuple(f"disk{number}" for number in range(6))
ROUNDS = 12
"""Bursts of requests in one run."""


async def _fleet(directory: Path) -> SimCluster:
    builder = ClusterBuilder()
    for name in DISKS:
        builder.disk(name)
    for number, name in enumerate(INSTANCES):
        builder.instance(name, NODES[number % 3])
    cluster = await SimCluster.start(directory, builder)
    for name in DISKS:
        new = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes[f"vol-{name}"] = new
    return cluster


def _request(dice: random.Random) -> tuple[str, dict[str, Any]]:
    instance = {"instance_name": dice.choice(INSTANCES)}
    disk = {"disk": dice.choice(DISKS)}
    target = {"target_node": dice.choice(NODES)}
    return dice.choice(
        [
            ("OP_DISK_ATTACH", disk | instance),
            ("OP_DISK_ATTACH", disk | instance),
            ("OP_DISK_DETACH", disk),
            ("OP_DISK_GROW", disk | {"amount": 8}),
            ("OP_DISK_SNAPSHOT", disk),
            ("OP_INSTANCE_MIGRATE", instance | target),
            ("OP_INSTANCE_FAILOVER", instance | target),
            ("OP_INSTANCE_STARTUP", instance),
            ("OP_INSTANCE_STARTUP", instance),
            ("OP_INSTANCE_SHUTDOWN", instance),
            ("OP_DISK_RENAME", disk | {"new_name": "other"}),
            ("OP_DISK_REMOVE", disk),
        ]
    )


async def _burst(cluster: SimCluster, dice: random.Random) -> list[int]:
    """Submit some requests at once; sometimes the master dies meanwhile."""
    cluster.crash_at = len(cluster.points) + dice.randrange(60)
    numbers = []
    try:
        for _ in range(dice.randrange(1, 8)):
            op_id, fields = _request(dice)
            numbers.append(await cluster.submit(op_id, **fields))
        for number in numbers:
            await cluster.finished(number)
    except Crash:
        await cluster.crash()
        cluster.crash_at = None
        await cluster.boot()
    cluster.crash_at = None
    for number in list(cluster.engine.jobs):
        await cluster.finished(number)
    return numbers


async def _holds(cluster: SimCluster, before: dict[str, int]) -> None:
    seen = await picture(cluster)
    assert cluster.nodes.san.broken == []
    assert cluster.engine.locks.rows() == []
    assert (seen.orphans, seen.missing, seen.quarantined) == (set(), set(), set())
    now = epochs(cluster.config)
    assert {u for u, epoch in before.items() if now.get(u, epoch) < epoch} == set()
    owned = [d for one in cluster.config.all(Instance) for d in one.disks]
    assert len(owned) == len(set(owned))
    for disk in cluster.config.all(Disk):
        assert seen.volumes[disk.volume] == disk.size
    _check_attached(cluster)


def _check_attached(cluster: SimCluster) -> None:
    """Fail unless each node has what the configuration says, and nothing else."""
    config, san = cluster.config, cluster.nodes.san
    wanted = {
        f"{one.primary_node} {disk.volume}"
        for one in config.all(Instance)
        if one.disks_active
        for disk in config.disks_of(one)
    }
    assert set(san.attached) == wanted
    running = {
        f"{one.primary_node} {one.uuid}": set(one.disks)
        for one in config.all(Instance)
        if one.admin_state == "up"
    }
    guests = {key: set(one["state"]["disks"]) for key, one in san.guests.items()}
    assert guests == running


def _check_told(cluster: SimCluster, numbers: list[int]) -> None:
    """Fail if a job ended with a defect of ours."""
    for number in numbers:
        for op in cluster.engine.job(number).ops:
            text = str(from_json(op.error)) if op.error else ""
            assert "internal error" not in text


async def _run(directory: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    cluster = await _fleet(directory)
    for _ in range(ROUNDS):
        before = epochs(cluster.config)
        numbers = await _burst(cluster, dice)
        _check_told(cluster, numbers)
        await _holds(cluster, before)
    await cluster.stop()


@pytest.mark.requirement("S3-24")
@pytest.mark.parametrize("seed", range(12))
async def test_any_order_of_requests_and_crashes(tmp_path: Path, seed: int) -> None:
    await _run(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
async def test_many_orders_of_requests_and_crashes(tmp_path: Path, seed: int) -> None:
    await _run(tmp_path, seed)
