# SPDX-License-Identifier: BSD-2-Clause
"""The archive: what it keeps, for how long, and what one job in it costs."""

import zlib
from typing import Any

import pytest

from moorage.jobs import archive
from moorage.jobs.job import encode
from moorage.store import Damaged
from moorage.testing.cluster import SimCluster

GROW_A = {"OP_ID": "OP_DISK_GROW", "disk": "a", "amount": 8}


async def put_away(cluster: SimCluster, many: int) -> None:
    for _ in range(many):
        number = await cluster.engine.submit([GROW_A])
        await cluster.finished(number)
        assert await cluster.engine.queue.archive(number)


def kept(cluster: SimCluster) -> list[int]:
    """Return the numbers of the archived jobs of which there are records."""
    names = [name for kind, name in cluster.store.records if kind == archive.KIND]
    assert sorted(archive.parsed(one)[0] for one in names) == sorted(
        cluster.engine.queue.archived.times
    )
    return sorted(archive.parsed(one)[0] for one in names)


async def test_an_archived_job_is_as_it_was_after_a_crash_too(
    cluster: SimCluster,
) -> None:
    number = await cluster.engine.submit([GROW_A])
    await cluster.finished(number)
    whole = encode(cluster.engine.job(number))
    await cluster.engine.queue.archive(number)
    await cluster.crash()
    await cluster.boot()
    assert cluster.engine.jobs == {}
    for numbers in (None, [number], [number, 99], range(1000)):
        found = await cluster.engine.queue.archived.jobs(numbers)
        assert {one: encode(job) for one, job in found.items()} == {number: whole}


async def test_jobs_go_by_age(cluster: SimCluster) -> None:
    await put_away(cluster, 2)
    await cluster.engine.queue.archived.expire(cluster.clock() + 13 * 86400)
    assert kept(cluster) == [1, 2]
    await cluster.engine.queue.archived.expire(cluster.clock() + 15 * 86400)
    assert kept(cluster) == []
    await put_away(cluster, 1)
    assert kept(cluster) == [3]


async def test_jobs_go_by_number_the_oldest_first(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "KEPT", 3)
    await put_away(cluster, 5)
    assert kept(cluster) == [3, 4, 5]
    await cluster.crash()
    await cluster.boot()
    await put_away(cluster, 1)
    assert kept(cluster) == [4, 5, 6]


async def test_one_job_is_read_without_the_others(cluster: SimCluster) -> None:
    await put_away(cluster, 3)
    (spoilt,) = [
        name for _, name in cluster.store.records if name.startswith("0" * 14 + "2 ")
    ]
    for value in (b"", b"x", zlib.compress(b"{}"), zlib.compress(b"a" * 99)[:-9]):
        cluster.store.records[archive.KIND, spoilt] = value
        assert [*await cluster.engine.queue.archived.jobs([1, 3])] == [1, 3]
        with pytest.raises(Damaged, match="archived job 2 in the store"):
            await cluster.engine.queue.archived.jobs()


async def test_a_name_that_is_none_is_damage(cluster: SimCluster) -> None:
    records: dict[str, Any] = {"nonsense": b""}
    with pytest.raises(Damaged, match="archived job nonsense"):
        cluster.engine.queue.archived.load(records)
