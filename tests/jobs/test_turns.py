# SPDX-License-Identifier: BSD-2-Clause
"""Who asks a thousand nodes lets others have their turn."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moorage.jobs import Job
from moorage.jobs.turns import let_go, together
from moorage.testing.cluster import ClusterBuilder, SimCluster


async def test_answers_come_in_the_order_of_the_questions() -> None:
    async def work(number: int) -> int:
        for _ in range(number % 7):
            await asyncio.sleep(0)
        return number

    assert await together(work(n) for n in range(100)) == list(range(100))
    assert await together(work(n) for n in range(0)) == []


async def test_others_get_their_turn_before_all_have_begun() -> None:
    begun: list[int] = []
    seen: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)

    async def other() -> None:
        while len(begun) < 1_000:
            seen.append(len(begun))
            await asyncio.sleep(0)

    await asyncio.gather(other(), together(work(n) for n in range(1_000)))
    jumps = [after - before for before, after in pairwise(seen)]
    assert max(jumps) < 10


async def test_no_more_than_some_are_under_way_together() -> None:
    under_way = 0
    most = 0

    async def work() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(500):
            await asyncio.sleep(0)
        under_way -= 1

    await together(work() for _ in range(250))
    assert most == 32


async def test_the_first_error_ends_the_waiting_and_the_rest() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        try:
            if number == 20:
                await asyncio.sleep(0)
                raise ValueError("no")
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="no"):
        await together(work(n) for n in range(40))
    for _ in range(3):
        await asyncio.sleep(0)
    assert 20 in begun
    assert sorted(ended) == begun != list(range(40))


def test_what_is_much_is_freed_one_by_one() -> None:
    """Others have their turn between two of them; freed as a whole, all wait."""
    left: list[int] = []

    class Answer:
        def __init__(self, among: dict[int, Any] | list[Any]) -> None:
            self._among = among

        def __del__(self) -> None:
            left.append(len(self._among))

    table, rows = dict[int, Any](), list[Any]()
    table.update((number, Answer(table)) for number in range(9))
    rows.extend(Answer(rows) for _ in range(9))
    let_go(table)
    let_go(rows)
    assert left == [*range(8, -1, -1)] * 2


async def test_others_get_their_turn_while_many_jobs_follow(tmp_path: Path) -> None:
    """As after an outage of storage that all instances use."""
    builder = ClusterBuilder(2)
    for number in range(200):
        builder.disk(f"d{number}")
        fields: dict[str, Any] = {"disks_active": True, "admin_state": "up"}
        builder.instance(f"web{number}", "node1", (f"d{number}",), **fields)
    sim = await SimCluster.start(tmp_path, builder)
    seen: list[int] = []

    async def other() -> None:
        while True:
            seen.append(sum(job.ops[0].status != "queued" for job in _jobs(sim)))
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    told = await sim.run("OP_CLUSTER_VERIFY_DISKS")
    for _, number in told["jobs"]:
        await sim.finished(number)
    others.cancel()
    assert len(told["jobs"]) == 200
    assert max(after - before for before, after in pairwise(seen)) <= 20
    await sim.stop()


def _jobs(sim: SimCluster) -> list[Job]:
    return list(sim.engine.jobs.values())


@pytest.mark.parametrize("number", [4, 5, 28])
async def test_an_error_of_the_last_turn_is_not_waited_upon(number: int) -> None:
    """The work failed in the turn in which all had begun; others may never end."""

    async def work(*, fails: bool) -> None:
        if fails:
            raise ValueError("it failed")
        await asyncio.Event().wait()

    failing = number // 4 * 4 - 1
    with pytest.raises(ValueError, match="it failed"):
        async with asyncio.timeout(1):
            await together(work(fails=one == failing) for one in range(number))
