# SPDX-License-Identifier: BSD-2-Clause
"""The master dies at every point of every request: before or after, never between.

What the nodes do goes on when it dies, and a new master takes over the same store.

Second deaths are as many as the square of the points: one in some is tried, another one
each time. MOORAGE_SEED says which, MOORAGE_ONE_IN one in how many (``make crashes``).
"""

import asyncio
import os
import time
from itertools import count
from typing import Any

import pytest

from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.scenarios import Scenario
from support.deaths import Death, different_points

SEED = int(os.environ.get("MOORAGE_SEED") or time.time() // 60)
ONE_IN = int(os.environ.get("MOORAGE_ONE_IN") or 6)


def one_in(sample: int, slow: int = 1) -> pytest.MarkDecorator:
    """Try one case in so many by default, and more of them among the slow tests."""
    some = pytest.param(sample, id="some", marks=pytest.mark.sample)
    more = pytest.param(slow, id="more", marks=pytest.mark.slow)
    return pytest.mark.parametrize("step", [some, more])


async def test_a_crash_wherever_it_leaves_something_else(
    port: Any, scenario: Scenario
) -> None:
    told = await port.reference(scenario)
    for death in told.deaths:
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


@one_in(47, ONE_IN)
async def test_a_second_crash_while_the_first_is_mended(
    port: Any, scenario: Scenario, step: int
) -> None:
    told = await port.reference(scenario)
    for first in [one.number for one in told.deaths if one.durable is None]:
        cluster = await _died(port, scenario, first)
        mending = different_points(cluster)
        await port.checked(cluster, await port.taken_over(cluster), told)
        for second in list(mending.values())[(first + SEED) % step :: step]:
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


@one_in(2)
@pytest.mark.parametrize("when", ["while it mends", "when it is done"])
async def test_a_step_of_the_dead_master_arrives_under_the_next_one(
    port: Any, scenario: Scenario, when: str, step: int
) -> None:
    told = await port.reference(scenario)
    named = enumerate(told.points)
    starts = [number for number, name in named if name.startswith("before ")]
    for number in starts[when == "when it is done" :: step]:
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
