# SPDX-License-Identifier: BSD-2-Clause
"""Master and agent tell their versions with every request: those that fit, work."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from moorage import __version__
from moorage.copies import CommitLog, Pace
from moorage.copies.follower import Follower
from moorage.errors import MoorageError, WrongState
from moorage.node import agent, server, wire
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates.authority import Authority
from moorage.node.records import leader
from moorage.protocol import GetFacts, Pause
from moorage.protocol.patience import CONNECTION
from moorage.protocol.sender import NEWEST, Sender, check, ourselves
from moorage.store import ConfigStore, MemoryStore, create
from moorage.testing.cluster import ClusterBuilder

pytestmark = pytest.mark.memory


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=0.3)
    yield found
    await found.close()


async def ask(nodes: HttpNodes, served: Any, term: int = 1) -> Any:
    return await nodes.call(served.node, GetFacts(), term, lambda *_: None)


@pytest.mark.parametrize(
    ("master", "node", "behind"),
    [
        ((1, 1), (1, 1), ""),
        ((1, 2), (1, 1), ""),
        ((2, 2), (2, 3), ""),
        ((1, 1), (2, 3), "the master's node"),
        ((3, 4), (1, 2), "node node7"),
    ],
)
def test_ranges_that_overlap_work_and_others_say_who_is_behind(
    master: tuple[int, int], node: tuple[int, int], behind: str
) -> None:
    one = Sender(oldest=master[0], newest=master[1], software="1.0")
    other = Sender(oldest=node[0], newest=node[1], software="2.0")
    if not behind:
        check(one, other, "node7")
        return
    with pytest.raises(WrongState) as error:
        check(one, other, "node7")
    text = error.value.message
    assert "Moorage 1.0" in text
    assert "Moorage 2.0" in text
    assert text.endswith(f"upgrade Moorage on {behind}")


async def test_an_agent_refuses_a_master_that_is_too_new_and_one_sentence_says_it(
    nodes: HttpNodes, served: Any
) -> None:
    far = NEWEST + 5
    nodes.exchange.sender = replace(ourselves(), oldest=far, newest=far, software="9.0")
    with pytest.raises(WrongState) as error:
        await ask(nodes, served)
    assert f"Moorage 9.0, protocol {far}" in error.value.message
    assert f"node node1 (Moorage {__version__}" in error.value.message
    assert error.value.message.endswith("upgrade Moorage on node node1")
    # The agent said no by itself: it had not looked at who leads.
    assert leader.read(served.top / "run") is None


async def test_a_master_from_before_versions_were_told_is_served(
    served: Any, nodes: HttpNodes
) -> None:
    nodes.exchange.sender = Sender()
    assert (await ask(nodes, served)).version == __version__


async def test_a_master_refuses_an_agent_that_is_too_new(
    served: Any, nodes: HttpNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = NEWEST + 5
    told = json.encode(Sender(oldest=far, newest=far, software="9.0")).decode()
    monkeypatch.setitem(server._HEADERS, wire.SENDER, told)
    with pytest.raises(MoorageError, match=r"upgrade Moorage on the master's node"):
        await ask(nodes, served)


async def test_a_node_knows_who_leads_and_forgets_no_later_one(
    nodes: HttpNodes, served: Any, authority: Authority
) -> None:
    nodes.exchange.sender = ourselves("node1", "10.0.0.1", "one")
    await ask(nodes, served, term=3)
    later = HttpNodes(authority)
    later.exchange.sender = ourselves("node2", "10.0.0.2", "one")
    await ask(later, served, term=4)
    await later.close()
    with pytest.raises(MoorageError, match="a master of term 4 has spoken"):
        await ask(nodes, served, term=3)
    known = leader.read(served.top / "run")
    assert known is not None
    assert (known.term, known.sender.node, known.sender.address) == (
        4,
        "node2",
        "10.0.0.2",
    )


async def _nobody() -> None:
    """Keep no record."""


async def test_the_agent_of_the_version_before_works_and_keeps_no_copy(
    served: Any, nodes: HttpNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent from before versions were told, and before copies: it is served on.

    When it is upgraded, and started again, it gets its copy.
    """
    store = MemoryStore()
    builder = ClusterBuilder(1)
    await create(store, builder.change())
    log = CommitLog(store)
    config_store, _ = await ConfigStore.open(log)
    follower = Follower(
        node=served.node,
        config_store=config_store,
        log=log,
        nodes=nodes,
        keys=dict,
        pace=Pace(beat=0.05, again=0.02),
        enlist=_nobody,
        wished=lambda: None,
    )
    former = {k: one for k, one in agent.VERBS.items() if not k.startswith("state.")}
    with monkeypatch.context() as then:
        then.delitem(server._HEADERS, wire.SENDER)
        then.setattr(agent, "VERBS", former)
        life = asyncio.create_task(follower.run())
        async with asyncio.timeout(120):
            while not follower.why:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert follower.status().why == "its agent is too old"
        assert (await ask(nodes, served, config_store.term)).version == __version__
    async with asyncio.timeout(120):
        while not follower.current:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)
    assert follower.status().commits == 0


async def test_a_step_waits_for_an_agent_that_is_being_upgraded(
    served: Any, nodes: HttpNodes
) -> None:
    await served.stop()
    again = asyncio.Event()
    notes: list[str] = []

    def report(_done: int, _total: int, _unit: str, note: str) -> None:
        notes.append(note)
        again.set()

    step = asyncio.create_task(nodes.call(served.node, Pause(), 1, report))
    await again.wait()
    await asyncio.sleep(sum(CONNECTION) + 0.1)  # whoever only looks has given up
    await served.start()
    await step
    (note,) = notes
    assert "Connection refused; trying again" in note
