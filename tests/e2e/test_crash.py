# SPDX-License-Identifier: BSD-2-Clause
"""The master dies at every point of every request: before or after, never between.

What the nodes do goes on when it dies, and a new master takes over the same store.

Second deaths are as many as the square of the points: slow tests try one first death in
MOORAGE_ONE_IN, with one second death in so many (``make crashes``: all).
"""

import asyncio
from itertools import count
from typing import Any

import pytest

from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.scenarios import Scenario
from support.deaths import Death, different_points
from support.sampling import EVERY_OTHER, ONE_IN, one_in, sampled


@one_in(8)
async def test_a_crash_wherever_it_leaves_something_else(
    port: Any, scenario: Scenario, step: int
) -> None:
    told = await port.reference(scenario)
    for death in sampled(told.deaths, step, scenario.name):
        cluster = await port.fresh()
        death.await_in(cluster)
        await port.crashed(cluster, scenario)
        if death.durable is not None and death.number + death.durable < 2:
            cluster._fresh = count(1000)  # it begins anew, and draws the same uuids
        await cluster.boot()
        if port.next_job not in cluster.engine.jobs:
            assert death == Death(0, durable=False)  # never acknowledged
            await cluster.stop()
            continue
        job = await cluster.finished(port.next_job)
        if death == Death(told.writes - 1, durable=True):
            assert job.status == "success"
        await port.checked(cluster, job, told)


@one_in(7, ONE_IN)
async def test_a_second_crash_while_the_first_is_mended(
    port: Any, scenario: Scenario, step: int
) -> None:
    told = await port.reference(scenario)
    firsts = [one.number for one in told.deaths if one.durable is None]
    for first in sampled(firsts, step, scenario.name):
        cluster = await _died(port, scenario, first)
        mending = different_points(cluster)
        await port.checked(cluster, await port.taken_over(cluster), told)
        of = f"{scenario.name} {first}"
        for second in sampled(list(mending.values()), step, of):
            cluster = await _died(port, scenario, first)
            cluster.crash_at = second
            with pytest.raises(Crash):
                await port.taken_over(cluster)
            await cluster.crash()
            await port.checked(cluster, await port.taken_over(cluster), told)


async def _died(port: Any, scenario: Scenario, point: int) -> SimCluster:
    """Return a cluster whose master died at a point of a request."""
    cluster: SimCluster = await port.fresh()
    cluster.crash_at = point
    await port.crashed(cluster, scenario)
    return cluster


@one_in(8, EVERY_OTHER)
@pytest.mark.parametrize("when", ["while it mends", "when it is done"])
async def test_a_step_of_the_dead_master_arrives_under_the_next_one(
    port: Any, scenario: Scenario, when: str, step: int
) -> None:
    told = await port.reference(scenario)
    named = enumerate(told.points)
    starts = [number for number, name in named if name.startswith("before ")]
    for number in sampled(starts, step, f"{scenario.name} {when}"):
        cluster = await port.fresh()
        if not await _held_back(cluster, scenario, number):
            await cluster.stop()
            continue
        late, cluster.nodes.hold = cluster.nodes.hold, None
        await cluster.crash()
        if when == "while it mends":
            asyncio.get_running_loop().call_soon(late.set)
        job = await port.taken_over(cluster)
        late.set()
        await port.checked(cluster, job, told)


async def _held_back(cluster: SimCluster, scenario: Scenario, number: int) -> bool:
    """Let the first step after a point hang on the way; False if there is none."""

    async def hang(_name: str) -> None:
        if len(cluster.points) == number:
            cluster.nodes.hold = asyncio.Event()

    cluster.extra_point = hang
    job = await cluster.submit(scenario.op_id, **scenario.fields)
    waiting = asyncio.create_task(cluster.finished(job))
    while not waiting.done():
        await asyncio.sleep(0)
        if cluster.nodes.hold and cluster.nodes.under_way:
            waiting.cancel()
            return True
    return False
