# SPDX-License-Identifier: BSD-2-Clause
"""A move that fails at any point: the guest runs again, where its disks are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desk import desk
from moorage.jobs import Job
from moorage.storage import Command
from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.state_snapshot import picture

MOVE = {"instance_name": "web3", "target_node": "node4"}
Prepare = Callable[[SimCluster], None]


async def _moving(mirrored: Any, prepare: Prepare = lambda _: None) -> SimCluster:
    """Return the cluster with web3 running, after something was arranged."""
    cluster = await mirrored.fresh()
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web3")
    cluster.points.clear()
    cluster.nodes.calls.clear()
    for node in cluster.nodes.nodes.values():
        node.machine.ran.clear()
    prepare(cluster)
    return cluster


async def _ended(cluster: SimCluster, number: int) -> list[Job]:
    """Wait for the move and the jobs that it submitted."""
    jobs = []
    while number in cluster.engine.jobs:
        jobs.append(await cluster.finished(number))
        number += 1
    return jobs


async def _moved(cluster: SimCluster) -> list[Job]:
    return await _ended(cluster, await cluster.submit("OP_INSTANCE_MOVE", **MOVE))


async def _check(cluster: SimCluster, jobs: list[Job]) -> None:
    """Fail unless the guest runs once, with its disks as they were, and it is told."""
    told = [(op.summary, op.error) for job in jobs for op in job.ops if op.error]
    seen = await picture(cluster)
    web3, disk = cluster.config.instance("web3"), cluster.config.disk("root3")
    home = cluster.config.node(web3.primary_node).name
    places = [key for key in seen.guests if key.endswith(f" {web3.uuid}")]
    assert cluster.nodes.san.broken == []
    assert cluster.engine.locks.rows() == []
    if not seen.quarantined:
        assert web3.admin_state == "up", told
        started = jobs[-1].status == "success" or len(jobs) == 1
        assert places == [f"{home} {web3.uuid}"] * started, told
        kept = len(jobs) > 1 and jobs[-2].status == "error"  # what failed is to halve
        assert kept or (disk.dev_type, disk.nodes) == ("plain", (home,)), told
        assert kept or seen.orphans == set(), told
    assert home == "node4" or told
    await cluster.stop()


async def test_a_move_of_a_running_guest(mirrored: Any) -> None:
    cluster = await _moving(mirrored)
    jobs = await _moved(cluster)
    assert [job.status for job in jobs] == ["success"] * 4
    assert cluster.config.node(cluster.config.instance("web3").primary_node).name == (
        "node4"
    )
    await _check(cluster, jobs)


async def test_commands_that_fail_once(mirrored: Any) -> None:
    cluster = await _moving(mirrored)
    await _moved(cluster)
    ran = {name: len(one.machine.ran) for name, one in cluster.nodes.nodes.items()}
    await cluster.stop()
    assert sum(ran.values()) > 20
    for name, commands in ran.items():
        for number in range(0, commands, 6):
            cluster = await _moving(mirrored, _failing(name, number))
            await _check(cluster, await _moved(cluster))


def _failing(name: str, at: int) -> Prepare:
    def prepare(cluster: SimCluster) -> None:
        machine, left = cluster.nodes.nodes[name].machine, at

        def refuse(_node: str, _command: Command) -> bool:
            nonlocal left
            left -= 1
            return left == -1

        machine.refuse = refuse

    return prepare


async def test_the_master_dies_in_the_middle(mirrored: Any) -> None:
    cluster = await _moving(mirrored)
    await _moved(cluster)
    points = len(cluster.points)
    await cluster.stop()
    for point in range(1, points, 7):
        cluster = await _moving(mirrored)
        cluster.crash_at = point
        number = max(cluster.engine.jobs) + 1
        with pytest.raises(Crash):
            await _moved(cluster)
        await cluster.crash()
        cluster.crash_at = None
        await cluster.boot()
        jobs = await _ended(cluster, number)
        assert jobs
        await _check(cluster, jobs)


async def test_whoever_typed_it_hears_what_broke(mirrored: Any, tmp_path: Path) -> None:
    cluster = await _moving(mirrored, _failing("node4", 3))
    async with desk(cluster, tmp_path) as at:
        said = await at.refused("gnt-instance move -f -n node4 web3")
        assert "it was told to" in said
        shown = "gnt-instance list --no-headers --separator=: -o pnode,status web3"
        assert await at.types(shown) == "node2:running\n"
    await cluster.stop()
