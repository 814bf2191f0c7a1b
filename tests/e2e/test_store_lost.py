# SPDX-License-Identifier: BSD-2-Clause
"""A store that cannot be written: the master ends, and the next one puts it right.

Nothing that was not stored is told, no lock is let go, and nothing that came later is
put back.
"""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from moorage.jobs.job import FINISHED, decode, encode
from moorage.model import Change, successor
from moorage.store import MemoryStore, Stored, StoreError, StoreLost, Write
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import SCENARIOS, Scenario
from support.sampling import EVERY_OTHER, one_in, sampled

each_request = pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[one.name.replace(" ", "-") for one in SCENARIOS]
)


class FullStore:
    """A store on a file system that is full for a while.

    Attributes
    ----------
    failures
        How many writes fail, from the one numbered `at` on.
    """

    def __init__(self, store: MemoryStore, at: int, failures: int) -> None:
        self._store = store
        self._until = at + failures
        self._at = at
        self._number = count()

    async def lead(self) -> int:
        return await self._store.lead()

    async def load(self) -> Stored:
        return await self._store.load()

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        if self._at <= next(self._number) < self._until:
            raise StoreError("the store in /full: database or disk is full")
        return await self._store.commit(writes, expected=expected)

    async def close(self) -> None:
        await self._store.close()


async def lost(cluster: SimCluster, scenario: Scenario) -> None:
    """Run a request until the master has lost its store."""
    try:
        number = await cluster.submit(scenario.op_id, **scenario.fields)
    except StoreLost:
        return
    waits = [
        asyncio.create_task(cluster.config_store.lost.wait()),
        asyncio.create_task(cluster.finished(number)),
    ]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert cluster.config_store.lost.is_set()


@pytest.mark.parametrize("failures", [1, 1000], ids=["once", "for-a-while"])
@one_in(6, EVERY_OTHER)
@each_request
async def test_a_write_that_fails(
    quay: Any,
    scenario: Scenario,
    failures: int,
    step: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every write of every request, alone and with all that would follow."""
    told = await quay.reference(scenario)
    for write in sampled(range(told.writes), step, scenario.name):
        cluster = await quay.fresh()
        store = cluster.store
        cluster.config_store._store = FullStore(store, write, failures)
        await lost(cluster, scenario)
        assert "nothing is committed any more: the store in /full" in caplog.text
        _check_nothing_untrue_is_told(cluster)
        await cluster.crash()
        if write < 2:  # the request begins anew, so it draws the same uuids again
            cluster._fresh = count(1000)
        await cluster.boot()
        if not write:
            assert quay.next_job not in cluster.engine.jobs  # never acknowledged
            await cluster.stop()
            continue
        job = await cluster.finished(quay.next_job)
        await quay.checked(cluster, job, told)


def _check_nothing_untrue_is_told(cluster: SimCluster) -> None:
    """Fail unless what is told of every job is what the store has."""
    for number, told in cluster.engine.jobs.items():
        stored = decode(cluster.store.records["job", str(number)])
        waits = {"waiting": "queued"}
        states = [waits.get(op.status, op.status) for op in told.ops]
        assert states == [op.status for op in stored.ops]
        assert [op.result for op in told.ops] == [op.result for op in stored.ops]
        held = {row["name"] for row in cluster.engine.locks.rows()}
        for op in stored.ops:
            unfinished = op.status not in FINISHED
            wanted = {f"{lock.level}/{lock.name}" for lock in op.locks}
            assert not unfinished or wanted <= held


async def test_after_a_failed_write_nothing_is_committed(quay: Any) -> None:
    cluster = await quay.fresh()
    cluster.config_store._store = FullStore(cluster.store, 0, 1)
    disk = cluster.config.disk("spare")
    with pytest.raises(StoreLost):
        await cluster.config_store.commit(Change((successor(disk, 1.0, name="x"),)))
    with pytest.raises(StoreLost, match="disk is full"):  # why is told once more
        await cluster.config_store.commit(Change((successor(disk, 1.0, name="x"),)))
    assert cluster.config.disk("spare") == disk
    await cluster.stop()


ATTACH = {"OP_ID": "OP_DISK_ATTACH", "disk": "spare", "instance_name": "web1"}


@pytest.mark.parametrize("what", ["memory", "name", "removed"])
async def test_what_came_later_is_never_reverted(quay: Any, what: str) -> None:
    """A journal from before: the store was copied back, or written by two masters."""
    cluster = await quay.fresh()
    old = await _journal_in_the_middle(cluster)
    web, disk = cluster.config.instance("web1"), cluster.config.disk("spare")
    if what == "memory":
        new = successor(web, 2000.0, beparams={"maxmem": 200})
        change = Change((new,))
    elif what == "name":
        change = Change((successor(disk, 2000.0, name="other"),))
    else:
        change = Change(drop=(disk,))
    await cluster.config_store.commit(change)
    cluster.store.records["job", str(quay.next_job)] = old
    await cluster.crash()
    calls = len(cluster.nodes.calls)
    kept = dict(cluster.config.objects.items())
    await cluster.boot()
    job = await cluster.finished(quay.next_job)
    assert job.status == "error"
    assert "was changed by others since" in job.ops[0].error["message"]
    assert dict(cluster.config.objects.items()) == kept
    assert len(cluster.nodes.calls) == calls  # nobody was told to do anything
    assert cluster.engine.locks.rows() == []
    await cluster.stop()


async def _journal_in_the_middle(cluster: SimCluster) -> bytes:
    """Return the journal of an attach that has begun; the attach itself is undone."""
    found: list[bytes] = []

    async def keep(name: str) -> None:
        if name.startswith("during"):
            (job,) = cluster.engine.queue.working.values()
            found.append(encode(job))
            await cluster.engine.cancel(job.id)

    cluster.extra_point = keep
    number = await cluster.engine.submit([ATTACH])
    assert (await cluster.finished(number)).status == "canceled"
    return found[0]


async def test_a_commit_that_others_overtook_is_not_taken_back(quay: Any) -> None:
    cluster = await quay.fresh()

    async def meddle(name: str) -> None:
        if name.startswith("during"):
            disk = cluster.config.disk("spare")
            await cluster.config_store.commit(
                Change((successor(disk, 1.0, name="other"),))
            )
            (job,) = cluster.engine.queue.working
            await cluster.engine.cancel(job)

    cluster.extra_point = meddle
    job = await cluster.finished(await cluster.engine.submit([ATTACH]))
    assert cluster.config.disk("other").name == "other"
    assert job.finished
    await cluster.stop()
