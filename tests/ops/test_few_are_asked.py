# SPDX-License-Identifier: BSD-2-Clause
"""A disk for which no node is named asks the one that makes it, not its whole group."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import NotFound
from moorage.testing.cluster import ClusterBuilder, SimCluster

NODES = 6
ALL = {f"node{number}": 1 for number in range(1, NODES + 1)}


class Clock:
    """A clock that is put forward."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def sim(tmp_path: Path, clock: Clock) -> Any:
    found = SimCluster(tmp_path)
    found.clock = clock
    await found.make(ClusterBuilder(NODES))
    yield found
    await found.stop()


async def add(sim: SimCluster, name: str, **more: Any) -> dict[str, int]:
    """Make a disk; return how often each node was asked for its providers."""
    before = len(sim.nodes.calls)
    fields = {"size": 64, "disk_template": "ext", "provider": "san"} | more
    await sim.run("OP_DISK_ADD", name=name, **fields)
    calls = sim.nodes.calls[before:]
    return Counter(node for node, verb in calls if verb == "providers")


def lack(sim: SimCluster, *nodes: str, provider: str = "san") -> None:
    """Let an administrator take a provider from some nodes."""
    for node in nodes:
        machine = sim.nodes.nodes[node].machine
        machine.installed = [one for one in machine.installed if one.name != provider]


def told(sim: SimCluster) -> list[str]:
    """Return the warnings of the last job."""
    job = sim.engine.job(max(sim.engine.jobs))
    return [text for *_, text in job.ops[0].log if "Warning" in str(text)]


def made_by(sim: SimCluster, name: str) -> str | None:
    return sim.config.disk(name).last_node


async def test_the_others_are_asked_once_for_all_disks_of_a_moment(
    sim: SimCluster, clock: Clock
) -> None:
    assert await add(sim, "a") == ALL
    assert await add(sim, "b") == {"node1": 1}
    assert await add(sim, "c", node="node3") == {"node3": 1}
    clock.now += 121
    assert await add(sim, "d") == ALL


async def test_what_was_found_gets_old_while_a_disk_is_decided(
    sim: SimCluster, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was not asked for it, for others were told lately, lacks nothing by that."""
    lack(sim, "node2")
    await add(sim, "a")
    ask = sim.nodes.ask

    async def slowly(*asked: Any) -> list[object]:
        found = await ask(*asked)
        clock.now += 121
        return found

    with monkeypatch.context() as patch:
        patch.setattr(sim.nodes, "ask", slowly)
        assert await add(sim, "b") == {"node1": 1}
    [text] = told(sim)
    assert "node node2 has no ExtStorage provider 'san'" in text
    assert await add(sim, "c") == ALL
    assert len(told(sim)) == 1


async def test_another_group_of_nodes_is_asked_anew(sim: SimCluster) -> None:
    await add(sim, "a")
    await sim.run("OP_NODE_SET_PARAMS", node_name="node6", offline=True)
    assert await add(sim, "b") == {node: 1 for node in ALL if node != "node6"}


async def test_who_lacks_it_is_told_with_each_disk(sim: SimCluster) -> None:
    lack(sim, "node2")
    for name in ("a", "b"):
        await add(sim, name)
        [text] = told(sim)
        assert "node node2 has no ExtStorage provider 'san'" in text
        assert "the disk cannot be used there" in text


async def test_of_many_that_lack_it_some_are_named(sim: SimCluster) -> None:
    lack(sim, *(node for node in ALL if node != "node1"))
    await add(sim, "a")
    assert len(told(sim)) == 4
    assert "nor can it be used on 2 other nodes of the group" in told(sim)[-1]


async def test_another_node_makes_it_and_the_next_ones(sim: SimCluster) -> None:
    lack(sim, "node1", "node2")
    await add(sim, "a")
    assert await add(sim, "b") == {"node3": 1}
    assert [made_by(sim, name) for name in "ab"] == ["node3", "node3"]


async def test_no_refusal_rests_on_one_node_or_on_what_was_said_earlier(
    sim: SimCluster,
) -> None:
    await add(sim, "a")
    lack(sim, "node1", "node2", "node3")
    await add(sim, "b")
    assert made_by(sim, "b") == "node4"
    lack(sim, *ALL)
    fields = {"size": 64, "disk_template": "ext", "provider": "san", "name": "c"}
    assert isinstance(await sim.refused("OP_DISK_ADD", **fields), NotFound)
