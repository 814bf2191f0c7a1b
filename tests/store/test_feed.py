# SPDX-License-Identifier: BSD-2-Clause
"""The feed: each entry once, in order, whoever leads; and what is not kept."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from moorage.model import Change, successor
from moorage.model.events import Entry, Event
from moorage.protocol.sender import HIGHEST
from moorage.store import ConfigStore, MemoryStore, SqliteStore, create, feed
from moorage.store.feed import Feed
from moorage.testing.cluster import ClusterBuilder

JOB = Event(kind="job", event="added", job=1, status="queued", summary="TEST")


def entries(found: Sequence[bytes] | None) -> list[Entry]:
    assert found is not None
    return [feed.decoded(one) for one in found]


def grown(length: int) -> Feed:
    """Return a feed of entries 1 to `length`, all of which were told."""
    made = Feed()
    for number in range(1, length + 1):
        made.note(number, json.encode(Entry(number=number, time=0.0, events=(JOB,))))
    made.show(length)
    return made


async def opened(path: Path) -> ConfigStore:
    config_store, _ = await ConfigStore.open(SqliteStore(path))
    return config_store


async def test_each_object_that_a_commit_touches_is_in_its_entry() -> None:
    store = MemoryStore()
    await create(store, ClusterBuilder().disk("a").disk("b").change())
    config_store, _ = await ConfigStore.open(store)
    start, a, b = (
        config_store.feed.last,
        config_store.config.disk("a"),
        config_store.config.disk("b"),
    )
    change = Change(
        (successor(a, 5.0, tags=("x",)), replace(a, uuid="c", name="c")), (b,)
    )
    await config_store.commit(change)
    (entry,) = entries(config_store.feed.after(start))
    told = {(one.event, one.kind, one.name, one.tags) for one in entry.events}
    assert told == {
        ("changed", "disk", "a", ("x",)),
        ("added", "disk", "c", ()),
        ("removed", "disk", "b", ()),
    }
    assert entry.time == 5.0


async def test_what_nobody_may_hear_of_is_in_no_entry() -> None:
    store = MemoryStore()
    await create(store, ClusterBuilder().change())
    config_store, _ = await ConfigStore.open(store)
    start = config_store.feed.last
    await config_store.commit(None, [(("queue", "last"), b"7")])
    assert config_store.feed.after(start) == []


async def test_entries_and_their_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    await create(store, ClusterBuilder().disk("a").change())
    await store.close()
    numbers, last = [], None
    for _ in range(3):
        config_store = await opened(path)
        last = config_store.feed.last if last is None else last
        await config_store.commit(
            Change((successor(config_store.config.disk("a"), 1.0),))
        )
        found = entries(config_store.feed.after(last))
        numbers += [one.number for one in found]
        last = numbers[-1]
        await config_store.close()
    assert len(numbers) == 3
    assert numbers == sorted(set(numbers))


async def test_the_order_holds_up_to_the_highest_term() -> None:
    """A thief of a candidate's key can have nodes heed a term that is far up."""
    store = MemoryStore()
    await create(store, ClusterBuilder().disk("a").change())
    heard = None
    for term in (10**20 >> 32, HIGHEST - 1):
        store.term = term - 1
        for _ in range(2):  # the numbers of these terms differ in their length
            config_store, _ = await ConfigStore.open(store)
            heard = heard or config_store.feed.last
            await config_store.commit(None, jobs=[JOB])
    config_store, _ = await ConfigStore.open(store)
    found = [one.number for one in entries(config_store.feed.after(heard))]
    assert len(found) == 4
    assert found == sorted(found)


async def test_nothing_is_told_before_the_copies_have_it() -> None:
    store = MemoryStore()
    await create(store, ClusterBuilder().disk("a").change())
    config_store, _ = await ConfigStore.open(store)
    start, there = config_store.feed.last, asyncio.Event()

    async def settled(_version: int) -> Sequence[str]:
        await there.wait()
        return ()

    config_store.settled = settled
    change = Change((successor(config_store.config.disk("a"), 1.0),))
    commit = asyncio.create_task(config_store.commit(change))
    assert not await config_store.feed.grown(start, 0.05)
    assert config_store.feed.after(start) == []
    there.set()
    await commit
    assert len(entries(config_store.feed.after(start))) == 1


async def test_the_oldest_entries_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "KEPT", 10)
    store = MemoryStore()
    await create(store, ClusterBuilder().disk("a").change())
    config_store, _ = await ConfigStore.open(store)
    start = config_store.feed.last
    for _ in range(25):
        await config_store.commit(None, jobs=[JOB])
    kept = await store.read(feed.KIND, "")
    assert len(kept) == 10
    assert config_store.feed.after(start) is None
    again, _ = await ConfigStore.open(store)
    first = min(entries(list(kept.values())), key=lambda one: one.number)
    assert len(entries(again.feed.after(first.number))) == 9


def test_who_was_away_goes_on_behind_what_it_heard() -> None:
    made = grown(9)
    assert [one.number for one in entries(made.after(0))] == list(range(1, 10))
    assert [one.number for one in entries(made.after(6))] == [7, 8, 9]
    assert [one.number for one in entries(made.after(6, 2))] == [7, 8]
    assert made.after(9) == []


def test_who_heard_what_a_later_master_does_not_have_is_told_so() -> None:
    made = grown(9)
    assert made.after(10) is None
    made.note(20, json.encode(Entry(number=20, time=0.0, events=(JOB,))))
    made.show(20)
    assert made.after(10) is None
    assert [one.number for one in entries(made.after(9))] == [20]


async def test_who_waits_is_woken() -> None:
    made = grown(1)
    waiting = asyncio.create_task(made.grown(1, 60.0))
    await asyncio.sleep(0)
    made.note(2, json.encode(Entry(number=2, time=0.0, events=(JOB,))))
    made.show(2)
    assert await waiting
