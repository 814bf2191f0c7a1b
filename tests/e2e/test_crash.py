# SPDX-License-Identifier: BSD-2-Clause
"""The master dies at every point of every request: before or after, never between.

What the nodes do goes on when it dies, and a new master takes over the same store.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from moorage.store import MemoryStore, Stored, Write
from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.scenarios import SCENARIOS, Scenario

each_request = pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[one.name.replace(" ", "-") for one in SCENARIOS]
)


def one_in(sample: int) -> pytest.MarkDecorator:
    """Try one case in so many by default, and all of them among the slow tests."""
    everything = pytest.param(1, id="all", marks=pytest.mark.slow)
    return pytest.mark.parametrize(
        "step", [pytest.param(sample, id="some"), everything]
    )


@each_request
async def test_a_crash_at_every_point(quay: Any, scenario: Scenario) -> None:
    told = await quay.reference(scenario)
    for point in range(len(told.points)):
        cluster = await quay.fresh()
        cluster.crash_at = point
        await quay.crashed(cluster, scenario)
        job = await quay.taken_over(cluster)
        await quay.checked(cluster, job, told)


@one_in(23)
@each_request
async def test_a_second_crash_while_the_first_is_mended(
    quay: Any, scenario: Scenario, step: int
) -> None:
    told = await quay.reference(scenario)
    for point in range(len(told.points)):
        second = point % step
        while True:
            cluster = await quay.fresh()
            cluster.crash_at = point
            await quay.crashed(cluster, scenario)
            cluster.crash_at = len(cluster.points) + second
            try:
                await cluster.boot()
                job = await cluster.finished(quay.next_job)
            except Crash:
                await cluster.crash()
                job = await quay.taken_over(cluster)
                await quay.checked(cluster, job, told)
                second += step
            else:
                await quay.checked(cluster, job, told)
                break


class DyingStore:
    """A store whose master dies at one of its writes, before or after it is durable."""

    def __init__(self, cluster: SimCluster, at: int, *, durable: bool) -> None:
        self._cluster = cluster
        self._store: MemoryStore = cluster.store
        self._left = at
        self._durable = durable

    async def lead(self) -> int:
        return await self._store.lead()

    async def load(self) -> Stored:
        return await self._store.load()

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        self._left -= 1
        if self._left < 0 and not self._durable:
            self._die()
        version = await self._store.commit(writes, expected=expected)
        if self._left < 0:
            self._die()
        return version

    async def close(self) -> None:
        await self._store.close()

    def _die(self) -> None:
        self._cluster.die()
        raise Crash


@one_in(3)
@pytest.mark.parametrize("durable", [False, True], ids=["before", "after"])
@each_request
async def test_a_crash_at_every_write(
    quay: Any, scenario: Scenario, durable: bool, step: int
) -> None:
    told = await quay.reference(scenario)
    for write in range(durable, told.writes, step):
        cluster = await quay.fresh()
        cluster.truth._store = DyingStore(cluster, write, durable=durable)
        await quay.crashed(cluster, scenario)
        if (
            write + durable < 2
        ):  # the request begins anew, so it draws the same uuids again
            cluster._fresh = count(1000)
        await cluster.boot()
        if not durable and write == 0:
            assert quay.next_job not in cluster.engine.jobs  # never acknowledged
            await cluster.stop()
            continue
        job = await cluster.finished(quay.next_job)
        if write + 1 == told.writes and durable:
            assert job.status == "success"
        await quay.checked(cluster, job, told)


@one_in(2)
@pytest.mark.parametrize("when", ["while it mends", "when it is done"])
@each_request
async def test_a_step_of_the_dead_master_arrives_under_the_next_one(
    quay: Any, scenario: Scenario, when: str, step: int
) -> None:
    told = await quay.reference(scenario)
    named = enumerate(told.points)
    starts = [number for number, name in named if name.startswith("before ")]
    for number in starts[when == "when it is done" :: step]:
        cluster = await quay.fresh()
        if not await _held_back(cluster, scenario, number):
            await cluster.stop()
            continue
        late, cluster.nodes.hold = cluster.nodes.hold, None
        await cluster.crash()
        if when == "while it mends":
            asyncio.get_running_loop().call_soon(late.set)
        job = await quay.taken_over(cluster)
        late.set()
        await quay.checked(cluster, job, told)


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
        if cluster.nodes.hold and cluster.nodes._under_way:
            waiting.cancel()
            return True
    return False
