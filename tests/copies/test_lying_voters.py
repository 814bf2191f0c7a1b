# SPDX-License-Identifier: BSD-2-Clause
"""Nodes that lie about copies and masters: a number alone moves nobody.

Who is no candidate is not believed about copies; a candidate has to give what it says
that it has; and no word of one node ends a master or keeps a candidate from leading.
"""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from candidates import LEDGER, Town, follow, led
from moorage.daemons import succession
from moorage.errors import Failed, MoorageError, WrongState
from moorage.model.commits import Head
from moorage.protocol import HeedTerm, Portion, ReadCopy, Standing
from moorage.protocol.sender import HIGHEST
from moorage.store import MemoryStore, StoreLost, create, inspect
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.nodes import SimNodes

FAR = Head(10**9, 3, 12345)


class Lying:
    """A way to nodes of which one says what it likes of itself."""

    def __init__(self, town: Town, liar: str, **said: Any) -> None:
        self.town, self.liar, self.said = town, liar, said
        self.portion: Portion | None = None

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if node.name == self.liar and isinstance(call, ReadCopy) and self.portion:
            return self.portion
        done = await self.town.nodes.call(node, call, term, report)
        if node.name == self.liar and isinstance(done, Standing):
            done = replace(done, **self.said)
        return done


def _made(town: Town, name: str) -> set[str]:
    found = inspect(town.directory / f"master-{name}" / "state.sqlite", live=False)
    assert found.faults == []
    return {one for kind, one in found.records if kind == LEDGER}


@pytest.mark.parametrize(
    "lie",
    [{"copy": FAR}, {"led": 5000, "leader": "node4"}],
    ids=["of its copy", "of a later master"],
)
async def test_a_node_that_is_no_candidate_forbids_no_failover(
    town: Town, lie: dict[str, Any]
) -> None:
    await town.commit(1)
    await town.stop()
    told = await follow(town, "node2", Lying(town, "node4", **lie))
    assert told[-1].startswith("node node2 is the master")
    assert _made(town, "node2") == {"1"}
    if "copy" in lie:
        assert any("node4 has" in one and "is no candidate" in one for one in told)


@pytest.mark.parametrize(
    "lie",
    [{"copy": FAR}, {"led": 5000, "leader": "node4"}],
    ids=["of its copy", "of a later master"],
)
async def test_a_node_that_is_no_candidate_keeps_no_living_master_from_healing(
    town: Town, lie: dict[str, Any]
) -> None:
    """A failover broke, and left one node waiting; the liar would keep it so."""
    await town.stop()
    head, config = town.log.head, town.config_store.config
    town.nodes.nodes["node3"].agent._fence.pass_term(head.term + 100)
    way = Lying(town, "node4", **lie)
    assert await succession.claimed(
        way, config, head._replace(term=town.config_store.term)
    )


async def test_more_than_half_are_believed_about_a_later_master(town: Town) -> None:
    await town.stop()
    way = Lying(town, "node4", led=5000, leader="node9")
    way.liar = "node4"
    inner = Lying(town, "node1", led=5000, leader="node9")
    third = Lying(town, "node3", led=5000, leader="node9")
    way.town, inner.town = _Through(inner), _Through(third)  # type: ignore[assignment]
    with pytest.raises(MoorageError, match="a later master has led since") as told:
        await follow(town, "node2", way)
    assert "--accept-loss" in told.value.hint
    with pytest.raises(MoorageError, match="a later master has led since"):
        await follow(town, "node2", way, voting=False)  # that is another question
    assert await follow(town, "node2", way, lossy=True)


class _Through:
    def __init__(self, nodes: Any) -> None:
        self.nodes = nodes


async def test_a_term_that_nobody_can_follow_is_told_with_a_way_out(
    town: Town,
) -> None:
    await town.commit(1)
    await town.stop()
    fences = [one.agent._fence for one in town.nodes.nodes.values()]
    for fence in fences:
        fence.pass_term(HIGHEST)
    with pytest.raises(WrongState, match="no master can count further") as told:
        await follow(town, "node2", town.nodes)
    assert "on each node: rm /var/lib/moorage-node/run/fence/term" in told.value.hint
    for fence in fences:
        (fence._directory / "term").unlink()
    assert await follow(town, "node2", town.nodes)


async def test_a_candidate_has_to_give_what_it_says_that_it_has(town: Town) -> None:
    await town.commit(1)
    await town.stop()
    way = Lying(town, "node3", copy=FAR)
    with pytest.raises(Failed, match=r"the copy on node3 .* does not give it") as told:
        await follow(town, "node2", way)
    assert "--accept-loss" in str(told.value) or "here again" in told.value.hint
    way.portion = Portion(head=FAR, records=((("job", "1"), b"{}"),))
    with pytest.raises(Failed, match="not what the master sent"):
        await follow(town, "node2", way)
    way.portion = Portion(head=FAR, records=(), more=True)
    with pytest.raises(Failed, match="is no copy"):
        await follow(town, "node2", way)
    twice = ((("job", "1"), b"{}"),) * 2
    way.portion = Portion(head=FAR, records=twice, more=True)
    with pytest.raises(Failed, match="is no copy"):
        await follow(town, "node2", way)
    way.portion = Portion(head=Head(10**9 - 1, 3, 12345), records=())
    with pytest.raises(Failed, match="it stands at 999999999 now"):
        await follow(town, "node2", way)
    with pytest.raises(Failed, match="does not give it"):
        await follow(town, "node2", way, voting=False)
    assert await follow(town, "node2", way, lossy=True)
    assert _made(town, "node2") == {"1"}


async def _commit_on(town: Town) -> None:
    for number in range(2, 1000):
        await town.commit(number)
        await asyncio.sleep(0.01)


async def test_of_two_nodes_the_word_of_one_ends_no_master(tmp_path: Any) -> None:
    """The other one, a candidate, says that it heeds a later master: none was heard."""
    store = MemoryStore()
    await create(store, ClusterBuilder(2).change())
    nodes = SimNodes(tmp_path)
    for number in range(1, 3):
        nodes.add(f"node{number}")
    town = await led(tmp_path, nodes, store)
    await town.whole("node2")
    nodes.nodes["node2"].agent._fence.pass_term(town.config_store.term + 1000)
    await town.commit(1)
    assert not town.config_store.lost.is_set()
    assert town.state("node2") == "behind"
    # When its own node heeds one, too, it is over.
    nodes.nodes["node1"].agent._fence.pass_term(town.config_store.term + 1000)
    with pytest.raises(StoreLost):
        await _commit_on(town)
    assert town.config_store.lost.is_set()
    await town.stop()


async def test_a_term_that_a_liar_made_high_keeps_nobody_from_leading(
    town: Town,
) -> None:
    """It was claimed by a failover that broke; then the liar is silent."""
    await town.stop()
    high = town.log.head.term + (1 << 32) - 1
    way = Lying(town, "node4", term=high)
    with pytest.raises((Failed, OSError), match="breaks"):
        await follow(town, "node2", _Breaking(way))
    assert town.nodes.nodes["node3"].agent._fence.term > high
    told = await follow(town, "node2", town.nodes)
    assert told[-1].startswith("node node2 is the master")


async def test_a_term_that_a_liar_made_high_hides_no_later_master(town: Town) -> None:
    """A candidate that was away while others counted so far has lost what they did."""
    await town.stop()
    led_since = {"led": town.log.head.term + (1 << 32) + 100, "leader": "node9"}
    way = Lying(town, "node1", **led_since)
    for name in ("node3", "node4"):
        inner, way = way, Lying(town, name, **led_since)
        way.town = _Through(inner)  # type: ignore[assignment]
    with pytest.raises(MoorageError, match="a later master has led since"):
        await follow(town, "node2", way)


class _Breaking:
    """A way to nodes that promise, and of which nobody hears it."""

    def __init__(self, nodes: Any) -> None:
        self.nodes = nodes

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        done = await self.nodes.call(node, call, term, report)
        if isinstance(call, HeedTerm) and node.name == "node1":
            await asyncio.sleep(0.2)
            raise OSError("it breaks")
        return done
