# SPDX-License-Identifier: BSD-2-Clause
"""The queue: what is told, what survives a restart, and what is forgotten."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from moorage.api import deeds
from moorage.api.query import Sources
from moorage.errors import NotFound, WrongState
from moorage.store import MemoryStore, Stored, Write
from moorage.store.feed import decoded
from moorage.testing.cluster import SimCluster

GROW_A = {"OP_ID": "OP_DISK_GROW", "disk": "a", "amount": 8}
NONSENSE = {"OP_ID": "OP_DISK_GROW", "disk": "nobody", "amount": 8}


class SlowStore:
    """A store whose writes wait until they are let through.

    Attributes
    ----------
    gate
        Open while writes get through.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self._store = store

    async def lead(self) -> int:
        return await self._store.lead()

    async def load(self) -> Stored:
        return await self._store.load()

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        return await self._store.commit(writes, expected=expected)

    async def close(self) -> None:
        await self._store.close()


@pytest.mark.parametrize("opcode", [GROW_A, NONSENSE], ids=["success", "error"])
async def test_a_state_is_told_when_it_is_stored(cluster: SimCluster, opcode) -> None:
    """Each write of a job is held up, and what is told is compared with the store."""
    store = cluster.config_store._store = SlowStore(cluster.store)
    number = await cluster.engine.submit([opcode])
    seen = []
    while not cluster.engine.job(number).finished:
        store.gate.clear()
        for _ in range(50):
            await asyncio.sleep(0)
        if store.waiting:
            told = cluster.engine.job(number)
            seen.append(told.status)
            assert not told.finished
            assert told.ops[0].result is None
            done = max(told.ops[0].cursor, 0)
            assert len(told.ops[0].results) == done
            assert not await cluster.engine.queue.changed(number, 0.001)
        store.gate.set()
        for _ in range(3):
            await asyncio.sleep(0)
    assert seen[-1] in ("running", "waiting")
    assert cluster.engine.job(number).ops[0].end_timestamp


async def test_numbers_never_start_again(cluster: SimCluster) -> None:
    for _ in range(3):
        last = await cluster.engine.submit([GROW_A])
        await cluster.finished(last)
    for number in list(cluster.engine.jobs):
        assert await cluster.engine.queue.archive(number)
    await cluster.crash()
    await cluster.boot()
    assert cluster.engine.jobs == {}
    assert await cluster.engine.submit([GROW_A]) == last + 1


async def test_a_job_is_put_away_once_whoever_asks(cluster: SimCluster) -> None:
    at = Sources(
        cluster.config_store, cluster.nodes, cluster.engine, clock=cluster.clock
    )
    for _ in range(3):
        await cluster.finished(await cluster.engine.submit([GROW_A]))
    feed = cluster.config_store.feed
    start = feed.last
    await asyncio.gather(
        deeds.archive_old(at, -1),
        deeds.archive(at, 1),
        deeds.archive_old(at, -1),
        deeds.archive(at, 2),
    )
    assert cluster.engine.jobs == {}
    told = [decoded(one).events for one in feed.after(start) or ()]
    assert sorted(event.job for (event,) in told) == [1, 2, 3]


async def test_a_drained_queue_stays_drained(cluster: SimCluster) -> None:
    await cluster.engine.queue.drain(draining=True)
    await cluster.crash()
    await cluster.boot()
    with pytest.raises(WrongState, match="drained"):
        await cluster.engine.submit([GROW_A])
    await cluster.engine.queue.drain(draining=False)
    await cluster.crash()
    await cluster.boot()
    assert await cluster.engine.submit([GROW_A])


async def test_one_who_may_submit_all_the_same_opens_the_queue_for_nobody(
    cluster: SimCluster,
) -> None:
    await cluster.engine.queue.drain(draining=True)
    both = await asyncio.gather(
        cluster.engine.submit([GROW_A], although_drained=True),
        cluster.engine.submit([GROW_A]),
        cluster.engine.queue.drain(draining=False),
        return_exceptions=True,
    )
    assert isinstance(both[0], int)
    assert isinstance(both[1], WrongState)
    assert not cluster.engine.queue.draining


async def test_jobs_that_have_ended_are_forgotten(cluster: SimCluster) -> None:
    engine = cluster.engine
    for opcode in (GROW_A, NONSENSE) * 5:
        number = await engine.submit([opcode])
        waits = asyncio.create_task(engine.queue.changed(number, 5))
        await cluster.finished(number)
        await waits
        await engine.cancel(number)
    await asyncio.sleep(0)
    for number in list(engine.jobs):
        await engine.queue.archive(number)
    queue, waiting = engine.queue, engine._waiting
    left = (queue.jobs, queue.working, queue._turns, queue._progress, queue._changed)
    more = (engine._running, engine.slots.holders, waiting._under_way)
    asker = (engine._asker._pending, engine._asker.stuck)
    assert [len(one) for one in (*left, *more, *asker)] == [0] * 10
    assert engine.locks.rows() == []


async def test_jobs_that_follow_are_stored_with_the_one_that_brought_them(
    cluster: SimCluster,
) -> None:
    """Whatever the moment of a crash, an evacuation is submitted once."""
    evacuate = {"OP_ID": "OP_NODE_EVACUATE", "node_name": "node1", "mode": "all"}
    number = await cluster.engine.submit([evacuate | {"remote_node": "node2"}])
    writes = cluster.store.version
    job = await cluster.finished(number)
    followed = [one for _, one in job.ops[0].result["jobs"]]
    assert followed
    assert all(one in cluster.engine.jobs for one in followed)
    assert cluster.store.version > writes
    for one in followed:
        await cluster.finished(one)


@pytest.mark.parametrize(
    ("opcodes", "states"),
    [([GROW_A], ["success"]), ([NONSENSE, GROW_A], ["error", "error"])],
    ids=["success", "error"],
)
async def test_a_job_that_a_crash_kept_from_being_closed_is_closed(
    cluster: SimCluster, opcodes, states
) -> None:
    """The last write of a job, which gives it its end, is lost."""
    number = await cluster.engine.submit(opcodes)
    await cluster.finished(number)
    job = cluster.recorded(number)
    for op in job.ops[1:]:
        op.status, op.error, op.end_timestamp = "queued", None, None
    cluster.record(replace(job, end_timestamp=None))
    await cluster.crash()
    await cluster.boot()
    job = await cluster.finished(number)
    assert job.end_timestamp is not None
    assert [op.status for op in job.ops] == states


async def test_who_waits_is_told_of_talk_at_once(cluster: SimCluster) -> None:
    """A line of the log, and progress, are no states: nothing is stored for them."""
    queue, reached, gate = cluster.engine.queue, asyncio.Event(), asyncio.Event()

    async def wait(_name: str) -> None:
        reached.set()
        await gate.wait()

    cluster.extra_point = wait
    number = await cluster.engine.submit([GROW_A])
    await reached.wait()
    job, writes = queue.working[number], cluster.store.version
    for talk in (
        lambda: queue.note(job, job.ops[0], "a line"),
        lambda: queue.progress(job, 3, 7, "MiB", "copy"),
    ):
        waits = asyncio.create_task(queue.changed(number, 60))
        await asyncio.sleep(0)
        talk()
        for _ in range(10):
            await asyncio.sleep(0)
        assert waits.done()
        assert await waits
    assert queue.job(number).ops[0].log == [(1, (1000, 0), "message", "a line")]
    told = {"done": 3, "total": 7, "unit": "MiB", "note": "copy"}
    assert queue.progress_of(number) == told
    assert cluster.store.version == writes
    gate.set()
    await cluster.finished(number)


async def test_nothing_is_kept_of_a_job_that_is_archived(cluster: SimCluster) -> None:
    queue = cluster.engine.queue
    number = await cluster.engine.submit([GROW_A])
    await cluster.finished(number)
    assert not await queue.changed(number, 0)  # somebody has waited in vain
    await queue.archive(number)
    assert queue._changed == {}
    with pytest.raises(NotFound, match=f"job {number} is not known") as caught:
        queue.job(number)
    assert caught.value.hint == "gnt-job list"
