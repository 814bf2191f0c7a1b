# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of two operations: the first one's work stays, whatever becomes of the second.

And the planned stop: a job stops between two tasks, and the next master carries it on.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.scenarios import SCENARIOS, Scenario
from moorage.testing.state_snapshot import Picture, picture

TWO = [
    {"OP_ID": "OP_DISK_ATTACH", "disk": "spare", "instance_name": "web1"},
    {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web3"},
]


async def until(claim: Callable[[], bool]) -> None:
    """Let the others run until a claim is true."""
    for _ in range(2000):
        if claim():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def reached(cluster: SimCluster, opcodes: list[dict[str, Any]]) -> Picture:
    """Run a job undisturbed; return what it leads to."""
    job = await cluster.finished(await cluster.engine.submit(opcodes))
    assert job.status == "success"
    seen = await picture(cluster)
    await cluster.stop()
    return seen


async def test_a_crash_at_every_point_of_both(quay: Any) -> None:
    sides = [quay.before]
    sides += [await reached(await quay.fresh(), TWO[:count]) for count in (1, 2)]
    cluster = await quay.fresh()
    await reached(cluster, TWO)
    second = 0
    for point in range(len(cluster.points)):
        trial = await quay.fresh()
        trial.crash_at = point
        with pytest.raises(Crash):
            await trial.finished(await trial.engine.submit(TWO))
        await trial.crash()
        job = await quay.taken_over(trial)
        states = [op.status for op in job.ops]
        done = states.index("error") if "error" in states else len(states)
        second += done == 1
        assert states == ["success"] * done + ["error"] * (2 - done)
        seen = await picture(trial)
        assert seen.differences(sides[done]) == []
        assert trial.engine.locks.rows() == []
        await trial.stop()
    assert second > 2  # it met the second operation in the middle


each_request = pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[one.name.replace(" ", "-") for one in SCENARIOS]
)


@each_request
async def test_a_job_is_handed_over_between_two_tasks(
    quay: Any, scenario: Scenario
) -> None:
    """Nothing was in the middle, so nothing is undone: the job succeeds."""
    told = await quay.reference(scenario)
    starts = [n for n, name in enumerate(told.points) if name.startswith("before ")]
    for point in starts[::2]:
        cluster = await quay.fresh()

        async def park(_name: str, at: SimCluster = cluster, when: int = point) -> None:
            at.engine.parking = at.engine.parking or len(at.points) == when

        cluster.extra_point = park
        number = await cluster.submit(scenario.op_id, **scenario.fields)
        task = cluster.engine._running[number]
        await asyncio.wait([task])
        await cluster.crash()
        job = await quay.taken_over(cluster)
        assert job.status == "success"
        await quay.checked(cluster, job, told)


async def test_a_planned_stop_lets_jobs_end_and_begins_none(quay: Any) -> None:
    cluster = await quay.fresh()
    gate = asyncio.Event()

    async def wait(_name: str) -> None:
        await gate.wait()

    cluster.extra_point = wait
    first = await cluster.engine.submit(TWO[:1])
    second = await cluster.engine.submit(TWO[:1])
    states = ["running", "waiting"]
    jobs = (first, second)
    await until(lambda: [cluster.engine.job(n).status for n in jobs] == states)
    leaving = asyncio.create_task(cluster.engine.leave(30))
    await asyncio.sleep(0)
    gate.set()
    await leaving
    assert cluster.engine.job(first).status == "success"
    await cluster.boot()
    job = await cluster.finished(second)
    assert job.status == "error"  # it ran under the next master: attached already
    await cluster.stop()


async def test_a_planned_stop_waits_for_no_node(quay: Any) -> None:
    cluster = await quay.fresh()
    number = await cluster.engine.submit(TWO[:1])

    async def cut(name: str) -> None:
        if name.startswith("during"):
            cluster.nodes.nodes["node1"].lose_power()
            await cluster.engine.cancel(number)

    cluster.extra_point = cut
    await until(lambda: number in cluster.engine._asker.stuck)
    await asyncio.wait_for(cluster.engine.leave(600), 30)
    cluster.nodes.nodes["node1"].boot()
    await cluster.boot()
    assert (await cluster.finished(number)).status == "canceled"
    await cluster.stop()
