# SPDX-License-Identifier: BSD-2-Clause
"""Locks: one order, shared or alone, first come first served by priority."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.jobs import Lock
from moorage.jobs.locks import LEVELS, Locks, in_order

A, B = Lock("disk", "a"), Lock("disk", "b")


def shared(lock: Lock) -> Lock:
    return Lock(lock.level, lock.name, shared=True)


async def taken(locks: Locks, owner: int, *wanted: Lock, priority: int = 0) -> bool:
    """Ask for locks; return whether they are there at once."""
    waiting = asyncio.create_task(locks.acquire(owner, wanted, priority))
    _TASKS.append(waiting)
    await asyncio.sleep(0)
    return waiting.done()


_TASKS: list[asyncio.Task[None]] = []


def test_the_order_is_by_level_then_by_name() -> None:
    given_ = [
        Lock("disk", "a"),
        Lock("node", "z"),
        Lock("disk", "b"),
        Lock("node", "a"),
    ]
    names = [(lock.level, lock.name) for lock in in_order(given_)]
    assert names == [("node", "a"), ("node", "z"), ("disk", "a"), ("disk", "b")]


def test_alone_wins_over_shared() -> None:
    assert in_order([shared(A), A, shared(A)]) == [A]


async def test_readers_share_and_a_writer_waits() -> None:
    locks = Locks()
    assert await taken(locks, 1, shared(A))
    assert await taken(locks, 2, shared(A))
    assert not await taken(locks, 3, A)
    assert locks.rows() == [
        {"name": "disk/a", "mode": "shared", "owner": [1, 2], "pending": [3]}
    ]
    locks.release(1)
    locks.release(2)
    await asyncio.sleep(0)
    assert locks.rows() == [
        {"name": "disk/a", "mode": "exclusive", "owner": [3], "pending": []}
    ]


async def test_a_waiting_writer_is_not_overtaken_by_readers() -> None:
    locks = Locks()
    assert await taken(locks, 1, shared(A))
    assert not await taken(locks, 2, A)
    assert not await taken(locks, 3, shared(A))
    locks.release(1)
    await asyncio.sleep(0)
    assert locks.rows()[0]["owner"] == [2]


async def test_a_low_number_comes_first() -> None:
    locks = Locks()
    assert await taken(locks, 1, A)
    assert not await taken(locks, 2, A, priority=10)
    assert not await taken(locks, 3, A, priority=-10)
    locks.release(1)
    await asyncio.sleep(0)
    assert locks.rows()[0]["owner"] == [3]


async def test_who_gives_up_waiting_lets_the_next_in() -> None:
    locks = Locks()
    assert await taken(locks, 1, shared(A))
    assert not await taken(locks, 2, A)
    writer = _TASKS[-1]
    assert not await taken(locks, 3, shared(A))
    writer.cancel()
    await asyncio.wait([writer])
    assert locks.rows()[0]["owner"] == [1, 3]


async def test_who_gives_up_holds_nothing() -> None:
    locks = Locks()
    assert await taken(locks, 1, B)
    assert not await taken(locks, 2, A, B)
    _TASKS[-1].cancel()
    await asyncio.wait([_TASKS[-1]])
    assert [row["owner"] for row in locks.rows()] == [[1]]
    locks.release(1)
    assert locks.rows() == []


LOCKS = st.builds(
    Lock, st.sampled_from(LEVELS), st.sampled_from(["a", "b", "c"]), st.booleans()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(LOCKS, max_size=6), max_size=10), st.integers())
def test_no_set_of_locks_ever_deadlocks(sets: list[list[Lock]], seed: int) -> None:
    asyncio.run(_all_get_through(sets, seed))


async def _all_get_through(sets: list[list[Lock]], seed: int) -> None:
    locks, dice, inside = Locks(), random.Random(seed), {}  # noqa: S311

    async def job(number: int, wanted: list[Lock]) -> None:
        await locks.acquire(number, wanted, dice.randrange(-20, 20))
        inside[number] = in_order(wanted)
        _check_apart(inside)
        for _ in range(dice.randrange(4)):
            await asyncio.sleep(0)
        del inside[number]
        locks.release(number)

    jobs = (job(number, wanted) for number, wanted in enumerate(sets))
    await asyncio.wait_for(asyncio.gather(*jobs), 120)
    assert locks.rows() == []


def _check_apart(inside: dict[int, list[Lock]]) -> None:
    held: dict[tuple[str, str], list[bool]] = {}
    for locks in inside.values():
        for lock in locks:
            held.setdefault((lock.level, lock.name), []).append(lock.shared)
    assert all(len(how) == 1 or all(how) for how in held.values())


@pytest.mark.requirement("S3-50")
async def test_two_disks_are_two_locks() -> None:
    locks = Locks()
    assert await taken(locks, 1, A)
    assert await taken(locks, 2, B)
    assert [row["name"] for row in locks.rows()] == ["disk/a", "disk/b"]
