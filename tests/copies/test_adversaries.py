# SPDX-License-Identifier: BSD-2-Clause
"""Successions that meet another one, or an older history: no loss goes untold."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from candidates import Town, follow, led
from moorage.daemons import failover, master_process, succession
from moorage.daemons.paths import MasterPlaces
from moorage.errors import Failed, Stale, Unreachable, WrongState
from moorage.model.commits import Head
from moorage.node.records.fence import Fence
from moorage.node.records.state_copy import StateCopy
from moorage.protocol import GetStanding, HeedTerm, Pause, silent
from moorage.protocol.sender import ourselves
from moorage.store import MemoryStore, SqliteStore, create, inspect, raise_term
from moorage.store.records import at_once, opened, put_head
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.nodes import SimNodes


class Slow:
    """A way to the nodes on which claims of a term wait for each other."""

    def __init__(self, nodes: SimNodes, others: int) -> None:
        self.nodes, self.barrier = nodes, asyncio.Barrier(others)
        self.met = 0

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if isinstance(call, HeedTerm):
            async with asyncio.timeout(20):
                await self.barrier.wait()
        return await self.nodes.call(node, call, term, report)


class Breaking:
    """A way to the nodes that breaks, but for one node, when a term is claimed."""

    def __init__(self, nodes: SimNodes, left: str) -> None:
        self.nodes, self.left = nodes, left

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if isinstance(call, HeedTerm) and node.name != self.left:
            raise Unreachable(f"{node.name} is gone", sent=False, cause="gone")
        return await self.nodes.call(node, call, term, report)


class Changing:
    """A way to the nodes on which the old master changes them, at a call of a kind."""

    def __init__(self, town: Town, kind: type) -> None:
        self.town, self.kind, self.left = town, kind, True
        self.claimed: set[str] = set()

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if isinstance(call, HeedTerm):
            self.claimed.add(node.name)
        if isinstance(call, self.kind):
            if self.left:
                self.left = False
                await self.town.mark("node5", offline=True)
            else:
                await asyncio.sleep(0.2)  # it is committed first
        return await self.town.nodes.call(node, call, term, report)


@pytest.fixture
async def five(tmp_path: Path) -> AsyncIterator[Town]:
    """Return a master on node1 with four candidates."""
    store = MemoryStore()
    await create(store, ClusterBuilder(5).change())
    nodes = SimNodes(tmp_path)
    for number in range(1, 6):
        nodes.add(f"node{number}")
    town = await led(tmp_path, nodes, store)
    await town.whole("node2", "node3", "node4", "node5")
    yield town
    await town.stop()


async def test_of_two_candidates_at_one_moment_one_becomes_the_master(
    five: Town,
) -> None:
    way = Slow(five.nodes, 10)  # both have asked all five nodes before any is claimed
    both = (follow(five, "node2", way), follow(five, "node3", way))
    ended = await asyncio.gather(*both, return_exceptions=True)
    failed = [one for one in ended if isinstance(one, Failed)]
    assert len(failed) >= 1, ended
    assert all(
        "more than half have to" in e.message or "no answer" in e.message
        for e in failed
    )
    made = ("master-node2", "master-node3")
    stores = [five.directory / one / "state.sqlite" for one in made]
    assert sum(one.exists() for one in stores) == 2 - len(failed)
    # Whoever lost may type it again: the next claim is of a higher term.
    assert await follow(five, "node3")


def test_a_term_is_promised_once(tmp_path: Path) -> None:
    fence = Fence(tmp_path)
    fence.pass_term(5)
    fence.promise_term(105)
    with pytest.raises(Stale, match="promised to another candidate"):
        Fence(tmp_path).promise_term(105)
    with pytest.raises(Stale):
        fence.promise_term(104)
    fence.pass_term(105)


def _stands(five: Town, name: str, head: Head) -> None:
    """Let a copy say that it stands elsewhere, with the records that it has."""
    path = StateCopy(five.directory / name / "state").path
    assert path
    with closing(opened(path)) as database, at_once(database):
        put_head(database, head)


def _head(five: Town, name: str) -> Head:
    found = StateCopy(five.directory / name / "state").head()
    assert found
    return found


async def test_a_later_masters_copy_counts_more_than_one_with_more_commits(
    five: Town,
) -> None:
    """What the old one went on to commit, cut off, is not what the cluster did."""
    await five.stop()
    head = _head(five, "node3")
    _stands(five, "node3", Head(head.version + 30, head.term, head.total))
    _stands(five, "node4", Head(head.version + 5, head.term + 101, head.total))
    assert await follow(five, "node3")
    store = five.directory / "master-node3" / "state.sqlite"
    assert inspect(store, live=False).version == head.version + 5 + 1


async def test_a_copy_that_a_later_master_never_saw_is_refused(five: Town) -> None:
    """The later master is gone with its machine, and no copy of its time is left."""
    await five.stop()
    term = _head(five, "node3").term + 101
    leader = five.nodes.nodes["node5"].agent._leaders
    leader.hear(term, _sender("node2"))
    said = f"a later master has led since \\(on node2, term {term}\\)"
    with pytest.raises(WrongState, match=said):
        await follow(five, "node3")
    told = await follow(five, "node3", lossy=True)  # somebody decides to lose it
    assert "node node3 is the master" in told[-1]


async def test_starts_of_the_same_master_are_no_later_masters(five: Town) -> None:
    await five.stop()
    term = _head(five, "node3").term + 7
    five.nodes.nodes["node5"].agent._leaders.hear(term, _sender("node1"))
    assert await follow(five, "node3")


def _sender(name: str) -> Any:
    return ourselves(name, "10.0.0.2", "test")


async def test_who_was_demoted_while_it_was_off_keeps_no_keys_when_it_is_back(
    five: Town,
) -> None:
    kept = five.directory / "node3" / "state"
    five.nodes.nodes["node3"].lose_power()
    await five.mark("node3", offline=True, master_candidate=False)
    await five.stop()
    again = await led(five.directory, five.nodes, five.store)  # another master
    await again.whole("node2", "node4", "node5")
    five.nodes.nodes["node3"].boot()
    assert (kept / "keys" / "ca.key").exists()
    await again.mark("node3", offline=False)
    await again.until(lambda: not kept.exists())
    await again.stop()


async def test_what_breaks_after_nodes_were_told_says_so_and_what_to_type(
    five: Town,
) -> None:
    with pytest.raises(Failed, match="1 of 5 nodes answer") as told:
        await follow(five, "node2", Breaking(five.nodes, "node2"))
    assert "take no orders of the former master" in told.value.message
    assert told.value.hint.startswith("gnt-cluster master-failover, here again")
    assert await follow(five, "node3")  # on another candidate, or
    assert await follow(five, "node2")  # here again
    assert (five.directory / "master-node2" / "state.sqlite").exists()


async def test_a_full_disk_stops_it_and_room_lets_it_go_on(five: Town) -> None:
    """The store that was begun is no store: a second try makes it anew."""
    places = MasterPlaces(five.directory / "master-node2")
    places.root.mkdir()
    places.keys.write_text("no directory can be made here")
    with pytest.raises(Failed, match="File exists") as told:
        await follow(five, "node2")
    assert told.value.hint.startswith("gnt-cluster master-failover, here again")
    assert not places.store.exists()
    places.keys.unlink()
    assert await follow(five, "node2")


def test_a_master_that_does_not_start_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(Failed) as told, failover._told_to_repeat():
        master_process.start(MasterPlaces(tmp_path))
    assert "there is no cluster in" in told.value.message
    assert "or on another candidate" in told.value.hint


async def test_nodes_that_came_or_went_while_somebody_thought_are_counted(
    five: Town,
) -> None:
    """The question may stand for hours; who is to be told is looked up after it."""
    way = Changing(five, GetStanding)
    assert await follow(five, "node2", way)
    assert way.claimed == {"node1", "node2", "node3", "node4"}


async def test_nodes_that_come_or_go_while_they_are_told_stop_a_failover(
    five: Town,
) -> None:
    """More than half of the nodes that there were are not more than half now."""
    with pytest.raises(Failed, match="nodes came or went") as told:
        await follow(five, "node2", Changing(five, HeedTerm))
    assert told.value.hint.startswith("gnt-cluster master-failover, here again")
    assert not (five.directory / "master-node2" / "state.sqlite").exists()
    assert await follow(five, "node2")


async def test_a_term_that_jumped_begins_with_a_commit_of_its_own(five: Town) -> None:
    """Else a whole copy would look as if a later master had led without it."""
    term, config = five.config_store.term, five.config_store.config
    for number in range(1, 6):
        leaders = five.nodes.nodes[f"node{number}"].agent._leaders
        leaders.hear(term, _sender("node1"))
    votes = await succession.ask_some(five.nodes, config)
    assert not succession.jumped(votes, term + 7)
    assert succession.jumped(votes, term + 101)
    # As after a restore of what the copies have, too.
    again = await _again(five)
    await again.stop()
    await again.log.close()
    path = five.directory / "own" / "state.sqlite"
    raise_term(path, term + 100)
    third = await led(five.directory, five.nodes, SqliteStore(path))
    await third.whole("node2", "node3", "node4", "node5")
    five.nodes.nodes["node5"].agent._leaders.hear(
        third.config_store.term, _sender("node1")
    )
    await third.config_store.commit(None)
    await third.stop()
    await third.log.close()
    assert await follow(five, "node2")


# -- a living master whose failover broke ----------------------------------------------


async def _again(five: Town) -> Town:
    """Let the master of `five` start again, on a store in a file."""
    await five.stop()
    path = five.directory / "own" / "state.sqlite"
    store = SqliteStore(path)
    await store.lead()
    head = five.store.head
    await store.commit([*five.store.records.items()], expected=0)  # type: ignore[attr-defined]
    await store.close()
    with closing(opened(path)) as database, at_once(database):
        put_head(database, head)
    return await led(five.directory, five.nodes, SqliteStore(path))


async def _claimed(town: Town) -> int:
    return await succession.claimed(
        town.nodes, town.config_store.config, town.log.head, 2.0
    )


async def _obey(town: Town) -> list[str]:
    """Return the nodes that take an order of a master."""
    found = []
    for number in range(1, 6):
        node = town.config_store.config.node(f"node{number}")
        with suppress(Stale):
            await town.nodes.call(node, Pause(), town.config_store.term, silent)
            found.append(node.name)
    return found


async def test_a_living_master_gets_the_nodes_back_that_a_broken_failover_told(
    five: Town,
) -> None:
    with pytest.raises(Failed):
        await follow(five, "node2", Breaking(five.nodes, "node2"))
    again = await _again(five)
    assert await _obey(again) == ["node1", "node3", "node4", "node5"]
    term = await _claimed(again)
    assert term > again.config_store.term
    await again.stop()
    await again.log.close()
    path = five.directory / "own" / "state.sqlite"
    raise_term(path, term)
    third = await led(five.directory, five.nodes, SqliteStore(path))
    await third.config_store.commit(None)
    assert len(await _obey(third)) == 5
    await third.whole("node2", "node3", "node4", "node5")
    await third.commit(1)
    assert await _claimed(third) == 0  # nobody refuses it any more
    # The copies are of its term: a later failover is refused by none of them.
    await third.stop()
    await third.log.close()
    assert await follow(five, "node2")


async def test_a_master_claims_nothing_that_more_than_half_promised_to_another(
    five: Town,
) -> None:
    again = await _again(five)
    for name in ("node2", "node3", "node4"):
        five.nodes.nodes[name].agent._fence.pass_term(again.config_store.term + 100)
    assert await _claimed(again) == 0
    await again.stop()
    await again.log.close()


async def test_a_master_claims_nothing_once_somebody_has_heard_its_successor(
    five: Town,
) -> None:
    again = await _again(five)
    term = again.config_store.term + 100
    five.nodes.nodes["node5"].agent._fence.pass_term(term)
    five.nodes.nodes["node5"].agent._leaders.hear(term + 1, _sender("node2"))
    assert await _claimed(again) == 0
    await again.stop()
    await again.log.close()


async def test_a_master_claims_nothing_when_a_copy_is_further(five: Town) -> None:
    again = await _again(five)
    head = _head(five, "node4")
    five.nodes.nodes["node5"].agent._fence.pass_term(again.config_store.term + 100)
    _stands(
        five,
        "node4",
        Head(head.version + 1, again.config_store.term + 101, head.total + 1),
    )
    assert await _claimed(again) == 0
    await again.stop()
    await again.log.close()


async def test_of_a_claim_and_a_failover_at_one_moment_one_gets_more_than_half(
    five: Town,
) -> None:
    with pytest.raises(Failed):
        await follow(five, "node2", Breaking(five.nodes, "node2"))
    again = await _again(five)
    way = Slow(five.nodes, 10)
    config, head = again.config_store.config, again.log.head
    claim = succession.claimed(way, config, head, 20.0)
    term, ended = await asyncio.gather(
        claim, follow(five, "node3", way), return_exceptions=True
    )
    assert not isinstance(term, BaseException)
    assert (term > 0) == isinstance(ended, Failed), (term, ended)
    assert (five.directory / "master-node3" / "state.sqlite").exists() == (not term)
    await again.stop()
    await again.log.close()
