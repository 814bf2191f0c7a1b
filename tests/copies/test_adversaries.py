# SPDX-License-Identifier: BSD-2-Clause
"""Successions that meet another one, or an older history: no loss goes untold."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from candidates import Town, led
from moorage.daemons import failover, master
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.errors import Failed, Stale, Unreachable, WrongState
from moorage.model.commits import Head
from moorage.node.fence import Fence
from moorage.node.state_copy import StateCopy
from moorage.protocol import HeedTerm
from moorage.protocol.sender import ourselves
from moorage.store import MemoryStore, create
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


async def follow(town: Town, name: str, way: Any = None, *, voting: bool = True) -> Any:
    """Let a candidate take over."""
    root = town.directory / "homes" / name
    (root / "keys").mkdir(parents=True, exist_ok=True)
    (root / "keys" / "node.pem").touch()
    (root / "keys" / "name").write_text(name)
    if not (root / "run").exists():
        (root / "run").symlink_to(town.directory / name)
    return await failover.promote(
        way or town.nodes,
        NodePlaces(root),
        MasterPlaces(town.directory / f"master-{name}"),
        voting=voting,
        agreed=lambda _: None,
    )


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
    with pytest.raises(WrongState, match="copy on node4 is of a later master") as told:
        await follow(five, "node3")
    assert told.value.hint == "gnt-cluster master-failover, on node4"


async def test_a_copy_that_a_later_master_never_saw_is_refused(five: Town) -> None:
    """The later master is gone with its machine, and no copy of its time is left."""
    await five.stop()
    term = _head(five, "node3").term + 101
    leader = five.nodes.nodes["node5"].agent._leaders
    leader.hear(term, _sender("node2"))
    said = f"a later master has led since \\(on node2, term {term}\\)"
    with pytest.raises(WrongState, match=said):
        await follow(five, "node3")
    told = await follow(five, "node3", voting=False)  # somebody decides to lose it
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
        master.start(MasterPlaces(tmp_path))
    assert "there is no cluster in" in told.value.message
    assert "or on another candidate" in told.value.hint
