# SPDX-License-Identifier: BSD-2-Clause
"""The old master lives, and is cut off: two masters never both get an order through."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from candidates import Town, led
from moorage.daemons import failover, succession, voting
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.errors import Stale, Unreachable, WrongState
from moorage.model import Config, apply
from moorage.model.commits import Head
from moorage.protocol import GetFacts, Pause, Standing, silent
from moorage.protocol.sender import ourselves
from moorage.store import SqliteStore, StoreLost, create
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.nodes import SimNodes


class Cut:
    """The way to the nodes of one master; some of them it does not reach.

    Attributes
    ----------
    obeyed
        The terms of the orders that each node took, in their order; all masters share
        it.
    said
        What a node says of itself that is not so.
    pause
        Seconds before a call gets to a node.
    mute
        Those that tell of themselves, and of nothing else.
    """

    def __init__(
        self, nodes: SimNodes, away: set[str], obeyed: dict[str, list[int]]
    ) -> None:
        self.nodes, self.away, self.obeyed = nodes, away, obeyed
        self.said: dict[str, dict[str, Any]] = {}
        self.pause: dict[str, float] = {}
        self.mute: set[str] = set()

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if node.name in self.away or (
            node.name in self.mute and not isinstance(call, GetFacts)
        ):
            raise Unreachable(f"{node.name} is cut off", sent=False, cause="cut off")
        await asyncio.sleep(self.pause.get(node.name, 0.0))
        done = await self.nodes.call(node, call, term, report)
        if isinstance(done, Standing):
            done = replace(done, **self.said.get(node.name, {}))
        if call.heeds_term:
            self.obeyed.setdefault(node.name, []).append(term)
        return done


class Pair:
    """An old master on node1, and a candidate on node2 that may follow it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.nodes = SimNodes(directory)
        self.obeyed: dict[str, list[int]] = {}
        self.old_way = Cut(self.nodes, set(), self.obeyed)
        self.new_way = Cut(self.nodes, set(), self.obeyed)
        self.places = MasterPlaces(directory / "master-node2")
        self.old: Town
        self.new: Town | None = None

    async def begin(self) -> None:
        builder = ClusterBuilder(3)
        store = SqliteStore(self.directory / "old" / "state.sqlite")
        await create(store, builder.change())
        await store.close()
        for number in range(1, 4):
            self.nodes.add(f"node{number}")
        store = SqliteStore(self.directory / "old" / "state.sqlite")
        self.old = await led(self.directory, self.nodes, store, self.old_way)
        await self.old.whole("node2", "node3")

    async def follow(self, *, voting: bool = True) -> None:
        """Let node2 take over, and lead."""
        root = self.directory / "home"
        (root / "keys").mkdir(parents=True, exist_ok=True)
        (root / "keys" / "node.pem").touch()
        (root / "keys" / "name").write_text("node2")
        if not (root / "run").exists():
            (root / "run").symlink_to(self.directory / "node2")
        await failover.promote(
            self.new_way,
            NodePlaces(root),
            self.places,
            voting=voting,
            agreed=lambda _: None,
        )
        store = SqliteStore(self.places.store)
        self.new = await led(self.directory, self.nodes, store, self.new_way)

    async def order(self, town: Town, name: str) -> bool:
        """Let a master give an order; return whether the node took it."""
        node = town.config_store.config.node(name)
        try:
            await town.standing.call(node, Pause(), town.config_store.term, silent)
        except (Stale, Unreachable):
            return False
        return True

    async def stop(self) -> None:
        for town in (self.old, self.new):
            if town:
                await town.stop()
                await town.log.close()


@pytest.fixture
async def pair(tmp_path: Path) -> Any:
    found = Pair(tmp_path)
    await found.begin()
    yield found
    await found.stop()


async def test_who_stood_still_acknowledges_nothing_that_the_next_master_lacks(
    pair: Pair,
) -> None:
    """It goes on, and finds that a candidate has been silent for long: it leads now."""
    pair.old_way.away |= {"node1", "node2", "node3"}
    await pair.follow()
    pair.old_way.away, pair.old_way.mute = {"node2"}, {"node1", "node3"}
    with pytest.raises(StoreLost, match="another master leads"):
        await pair.old.commit(1)
    assert pair.old.acknowledged == []


async def test_a_node_that_is_no_candidate_ends_no_master_that_others_are_silent_to(
    pair: Pair,
) -> None:
    """Its word may be anybody's."""
    await pair.old.mark("node3", master_candidate=False)
    pair.old_way.away |= {"node1", "node2", "node3"}
    await pair.follow()
    pair.old_way.away, pair.old_way.mute = {"node1", "node2"}, {"node3"}
    await pair.old.commit(1)
    assert pair.old.acknowledged == [1]


async def test_who_reaches_nobody_goes_on_and_strikes_them_off(pair: Pair) -> None:
    """Nobody is known to lead: the machines may all be off."""
    pair.old_way.away |= {"node2", "node3"}
    await pair.old.commit(1)
    assert pair.old.acknowledged == [1]


async def test_once_a_node_obeys_the_new_master_it_never_obeys_the_old(
    pair: Pair,
) -> None:
    chance = random.Random(7)  # noqa: S311
    pair.old_way.away = {"node2", "node3"}
    pair.new_way.away = {"node1"}
    await pair.follow()
    assert pair.new
    for turn in range(60):
        if turn == 30:  # the network heals
            pair.old_way.away, pair.new_way.away = set(), set()
        town = chance.choice([pair.old, pair.new])
        await pair.order(town, chance.choice(["node1", "node2", "node3"]))
    for terms in pair.obeyed.values():
        assert terms == sorted(terms)
        assert {pair.old.config_store.term, pair.new.config_store.term} <= set(terms)
    assert not await pair.order(pair.old, "node2")
    assert await pair.order(pair.new, "node1")


async def test_what_the_old_master_commits_after_it_was_followed_is_not_acknowledged(
    pair: Pair,
) -> None:
    await pair.old.commit(1)
    pair.new_way.away = {"node1"}
    await pair.follow()
    assert pair.new
    with pytest.raises(StoreLost):
        await pair.old.commit(2)
    assert pair.old.acknowledged == [1]
    await pair.new.commit(3)
    assert await pair.new.log.read("ledger", "") == {"1": b"x" * 50, "3": b"x" * 50}


async def test_an_old_master_that_starts_again_acknowledges_nothing_unasked(
    pair: Pair,
) -> None:
    """Too few nodes tell it that it was followed; the first candidate's word does."""
    pair.old_way.away = {"node2", "node3"}
    pair.new_way.away = {"node1"}
    await pair.follow()
    await pair.old.stop()
    await pair.old.log.close()
    pair.old_way.away, pair.old_way.pause = {"node3"}, {"node2": 0.1}
    store = SqliteStore(pair.directory / "old" / "state.sqlite")
    pair.old = await led(pair.directory, pair.nodes, store, pair.old_way)
    with pytest.raises(StoreLost):
        await pair.old.commit(1)
    assert pair.old.acknowledged == []


async def test_a_node_that_lies_about_its_term_shuts_no_later_master_out(
    pair: Pair,
) -> None:
    """No node takes an order of a term beyond what fits into a request."""
    most = (1 << 53) - 1
    pair.new_way.said["node3"] = {"term": most - voting.LEAP}
    await pair.follow()
    assert pair.new
    assert pair.new.config_store.term < pair.old.config_store.term + 2 * voting.LEAP
    assert await pair.order(pair.new, "node3")


async def test_a_candidate_that_only_few_reach_does_not_follow(pair: Pair) -> None:
    pair.new_way.away = {"node1", "node3"}
    with pytest.raises(WrongState, match="1 of 3 nodes answer"):
        await pair.follow()
    await pair.old.commit(1)  # nothing was changed
    assert pair.old.acknowledged == [1]


async def test_a_master_that_was_followed_lays_its_store_aside(pair: Pair) -> None:
    config, term = pair.old.config_store.config, pair.old.config_store.term
    assert await succession.follower(pair.old_way, config, term) is None
    for name in ("node1", "node2", "node3"):
        agent = pair.nodes.nodes[name].agent
        agent._leaders.hear(term + 100, ourselves("node2", "10.0.0.2", "test"))
        agent._fence.pass_term(term + 100)
    assert await succession.follower(pair.old_way, config, term) == "node2"
    # One that hangs does not keep the others from being heard.
    hung = Cut(pair.nodes, set(), {})
    hung.pause = {"node1": 60.0}
    found = await succession.follower(hung, config, term, patience=0.3)
    assert found == "node2"
    # One of three is not enough to believe it; nor is a master on the same node.
    one = Cut(pair.nodes, {"node1", "node3"}, {})
    assert await succession.follower(one, config, term) is None
    places = MasterPlaces(pair.directory / "old")
    said = succession.stand_down(places, Head(812, 5, 0), "node2")
    assert "on node node2 now" in said.message
    assert "812 commits, term 5" in said.message
    assert not places.store.exists()
    (aside,) = places.root.glob("former-*")
    assert (aside / "state.sqlite").exists()


async def test_a_master_that_lost_a_race_is_refused_and_waits_for_nobody(
    pair: Pair,
) -> None:
    pair.old_way.away = {"node2", "node3"}
    async with asyncio.timeout(10):
        await pair.old.commit(1)  # both are behind from here on, and it is told
    assert {one.state for one in pair.old.copies.status()} == {"behind"}
    pair.new_way.away = {"node1"}
    await pair.follow()
    assert pair.new
    assert await pair.new.log.read("ledger", "") == {}  # what was behind is not there
    pair.old_way.away = set()
    assert not await pair.order(pair.old, "node3")


def test_a_promise_to_a_failover_that_broke_makes_nobody_a_former_master() -> None:
    """A second try on its own node met it starting; the one before it was over."""
    builder = ClusterBuilder(3)
    config = apply(Config(), builder.change())  # the master is on node1
    former = Standing(term=405, led=206, leader="node2")
    votes = voting.Votes(said={"node1": former, "node2": former, "node3": former})
    assert succession.followed(votes, config, 306) is None
    later = Standing(term=405, led=405, leader="node2")
    votes = voting.Votes(said={"node1": former, "node2": later, "node3": later})
    assert succession.followed(votes, config, 306) == "node2"
