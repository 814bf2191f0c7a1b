# SPDX-License-Identifier: BSD-2-Clause
"""Candidates have what was acknowledged; one that is slow or dead stops nobody."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from candidates import KEYS, Town, led, on_disk
from moorage.errors import Stale
from moorage.protocol import GetStanding, HeedTerm, silent
from moorage.store import StoreLost


async def test_what_is_acknowledged_is_on_every_candidates_disk(town: Town) -> None:
    for number in range(5):
        await town.commit(number)
        for name in ("node2", "node3"):
            head, records = on_disk(town, name)
            assert head is not None
            assert head.holds(town.store.head)
            assert records == town.store.records
    assert not (town.directory / "node4" / "state" / "current").exists()
    assert not (town.directory / "node1" / "state" / "current").exists()


async def test_commits_at_once_go_together_and_each_is_there(town: Town) -> None:
    before = len(town.nodes.calls)
    await asyncio.gather(*(town.commit(number) for number in range(200)))
    calls = [verb for _, verb in town.nodes.calls[before:]]
    assert calls.count("state.apply") < 100
    await town.whole("node2", "node3")  # a busy machine may have left one behind
    assert on_disk(town, "node2")[1] == town.store.records


async def test_the_keys_come_before_the_commit_that_follows_them(town: Town) -> None:
    town.keys["next.key"] = b"next"
    await town.commit(1)
    kept = town.directory / "node3" / "state" / "keys"
    assert {one.name: one.read_bytes() for one in kept.iterdir()} == {
        **KEYS,
        "next.key": b"next",
    }
    del town.keys["next.key"]
    await town.commit(2)
    assert not (kept / "next.key").exists()
    assert (kept / "ca.key").stat().st_mode & 0o777 == 0o600


async def test_a_dead_candidate_is_behind_and_catches_up(town: Town) -> None:
    town.nodes.cut_power("node3")
    await town.commit(1)
    await town.until(lambda: town.state("node3") == "behind")
    async with asyncio.timeout(0.3):  # nobody waits for it any more
        await town.commit(2)
    (told,) = [one for one in town.copies.status() if one.state == "behind"]
    assert told.commits == 3  # that it is behind is one, too
    assert "does not answer" in told.why
    town.nodes.nodes["node3"].boot()
    await town.whole("node3")
    assert on_disk(town, "node3")[1] == town.store.records
    fills = [c for c in town.nodes.calls if c == ("node3", "state.begin")]
    assert len(fills) == 1  # when it began; now it got what it lacked


async def test_a_candidate_that_hangs_holds_a_commit_up_once(town: Town) -> None:
    town.nodes.hold = asyncio.Event()
    async with asyncio.timeout(10):
        await town.commit(1)
    assert {one.state for one in town.copies.status()} == {"behind"}
    assert "within 0.4 s" in town.copies.status()[0].why
    async with asyncio.timeout(0.3):
        await town.commit(2)
    town.nodes.hold.set()
    town.nodes.hold = None
    await town.whole("node2", "node3")
    assert on_disk(town, "node2")[1] == town.store.records


async def test_a_new_candidate_gets_a_whole_copy_and_a_former_one_forgets_it(
    town: Town,
) -> None:
    await town.commit(1)
    await town.mark("node4", master_candidate=True)
    await town.whole("node4")
    assert on_disk(town, "node4")[1] == town.store.records
    await town.mark("node4", master_candidate=False)
    await town.until(lambda: not (town.directory / "node4" / "state").exists())
    await town.commit(2)
    assert town.state("node4") == "none"


async def test_a_damaged_copy_is_found_and_sent_anew(town: Town) -> None:
    copy = town.nodes.nodes["node2"].agent._context.copies.state
    assert copy.path
    with closing(sqlite3.connect(copy.path)) as database, database:
        database.execute("UPDATE records SET value = X'00' WHERE kind = 'node'")
    assert copy.faults
    follower = town.copies._followers["node2"]
    follower.pace = type(follower.pace)(
        patience=0.4, beat=0.05, again=0.02, checked=0.0
    )
    before = town.nodes.calls.count(("node2", "state.begin"))
    await town.until(lambda: town.nodes.calls.count(("node2", "state.begin")) > before)
    await town.whole("node2")
    assert on_disk(town, "node2")[1] == town.store.records


async def test_a_copy_that_no_commit_can_be_written_to_is_sent_anew(
    town: Town,
) -> None:
    copies = town.nodes.nodes["node2"].agent._context.copies
    path = copies.state.path
    assert path
    await copies.run(copies.state.close)  # as an agent that was started again
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'records'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert await copies.run(copies.state.head)  # that can still be read
    await town.commit(1)
    await town.whole("node2")
    assert on_disk(town, "node2")[1] == town.store.records


async def test_a_copy_of_another_history_is_sent_anew(town: Town) -> None:
    await town.stop()
    # As after a restore: the store is another one, of the same version.
    town.store.records[("job", "77")] = b"other"
    town.store._sums[("job", "77")] = 5
    again = await led(town.directory, town.nodes, town.store)
    town.store._sums.pop(("job", "77"))
    del town.store.records[("job", "77")]
    await again.commit(1)
    await again.whole("node2", "node3")
    assert on_disk(again, "node2")[1] == again.store.records
    await again.stop()


async def test_a_node_that_heeds_a_later_master_takes_no_commit_of_this_one(
    town: Town,
) -> None:
    config = town.config_store.config
    for name in ("node4", "node3", "node2"):
        said = await town.nodes.call(config.node(name), HeedTerm(), 101, silent)
        assert said.term == 101
    held = said.copy
    assert held
    with pytest.raises(StoreLost):
        await town.commit(1)
    assert town.acknowledged == []
    assert town.config_store.lost.is_set()
    with pytest.raises(Stale):
        await town.nodes.call(config.node("node2"), HeedTerm(), 2, silent)
    # Whoever asks need not lead.
    said = await town.nodes.call(config.node("node2"), GetStanding(), 0, silent)
    assert (said.term, said.copy) == (101, held)


async def test_one_candidate_against_all_others_stops_nobody(town: Town) -> None:
    config = town.config_store.config
    await town.nodes.call(config.node("node3"), HeedTerm(), 101, silent)
    await town.commit(1)
    assert town.acknowledged == [1]
    assert town.state("node3") == "behind"
    assert town.state("node2") == "current"
