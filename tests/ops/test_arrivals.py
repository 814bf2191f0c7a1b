# SPDX-License-Identifier: BSD-2-Clause
"""A guest that has arrived while nobody looks: it runs, whoever has died.

One that an earlier version started stands still until it is told to go on.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.scenarios import harbour

MIGRATE = {"instance_name": "web1", "target_node": "node2", "mode": "non-live"}
ARRIVAL = "before see web1 run on node2"
LEAVING = "before end the old process of web1 on node1"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    found = await harbour(tmp_path)
    yield found
    assert found.nodes.san.broken == []
    await found.stop()


def _agent_is_away(
    cluster: SimCluster, seconds: float, name: str = "node2", step: str = ARRIVAL
) -> list[float]:
    """Let an agent be away from a step on, while the master rests for some seconds.

    Returns how long it rested each time.
    """
    node, rests = cluster.nodes.nodes[name], list[float]()

    async def steps(name: str) -> None:
        if name == step:
            node.powered = False

    async def pause(rest: float) -> None:
        rests.append(rest)
        node.powered = sum(rests) >= seconds

    cluster.extra_point = steps
    cluster.engine._asker._sleep = pause
    return rests


def _home(cluster: SimCluster) -> str:
    return cluster.config.instance("web1").primary_node


def _state(cluster: SimCluster) -> str:
    uuid = cluster.config.instance("web1").uuid
    found: str = cluster.nodes.san.guests[f"node2 {uuid}"]["state"]["state"]
    return found


@pytest.mark.parametrize("mode", ["live", "non-live"])
async def test_it_runs_while_agent_and_master_are_dead(
    cluster: SimCluster, mode: str
) -> None:
    """The target lets it run by itself; the next master sees to the rest."""
    number = await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE | {"mode": mode})

    async def dies(name: str) -> None:
        if name == "during transfer web1 from node1 to node2":
            cluster.nodes.nodes["node2"].powered = False
            cluster.crash_at = len(cluster.points)

    plain, cluster.extra_point = cluster.extra_point, dies
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    assert _state(cluster) == "running"
    assert cluster.config.node(_home(cluster)).name == "node1"  # nobody knows it yet
    cluster.crash_at, cluster.extra_point = None, plain
    cluster.nodes.nodes["node2"].powered = True
    await cluster.boot()
    assert (await cluster.finished(number)).status == "success"
    assert cluster.config.node(_home(cluster)).name == "node2"
    assert _state(cluster) == "running"


async def test_the_target_tells_how_long_it_took(cluster: SimCluster) -> None:
    """The source's figures end when all is sent; the guest runs later than that."""
    target = cluster.nodes.nodes["node2"].hypervisor

    async def arrived(uuid: str) -> int:
        del uuid
        return 95

    target.arrived = arrived  # type: ignore[method-assign]
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE))
    assert job.ops[0].result == {
        "total_ms": 95,
        "downtime_ms": 95 - (20 - 2),  # it ran that long while it was sent
        "transferred": 100,
    }


async def test_what_a_target_of_an_earlier_version_does_not_tell_is_left_out(
    cluster: SimCluster,
) -> None:
    target = cluster.nodes.nodes["node2"].hypervisor

    async def arrived(uuid: str) -> None:
        del uuid

    target.arrived = arrived  # type: ignore[method-assign]
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE))
    assert job.ops[0].result["total_ms"] == 20


@pytest.fixture
def as_before(cluster: SimCluster) -> None:
    """Let the source send as an earlier version did."""
    cluster.nodes.nodes["node1"].hypervisor.sends_as_before = True


@pytest.mark.usefixtures("as_before")
async def test_it_goes_on_when_the_agent_is_back(cluster: SimCluster) -> None:
    _agent_is_away(cluster, 40)
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE))
    assert job.status == "success"
    assert any("node2" in str(line[-1]) for line in job.ops[0].log)  # whom it waits for
    assert _state(cluster) == "running"


@pytest.mark.usefixtures("as_before")
async def test_it_goes_on_under_the_next_master(cluster: SimCluster) -> None:
    number = await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE)

    async def dies(name: str) -> None:
        if name == ARRIVAL:
            cluster.crash_at = len(cluster.points)

    plain, cluster.extra_point = cluster.extra_point, dies
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    assert _state(cluster) == "paused"
    cluster.crash_at, cluster.extra_point = None, plain
    await cluster.boot()
    assert (await cluster.finished(number)).status == "success"
    assert _state(cluster) == "running"


async def test_nobody_waits_for_a_node_that_is_said_to_be_off(
    cluster: SimCluster,
) -> None:
    _agent_is_away(cluster, 1_000_000)
    number = await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE)
    while cluster.nodes.nodes["node2"].powered:  # noqa: ASYNC110 - a crash sets no event
        await asyncio.sleep(0)
    fields = {"node_name": "node2", "offline": True, "force": True}
    await cluster.run("OP_NODE_SET_PARAMS", **fields)
    assert (await cluster.finished(number)).status == "success"
    home = cluster.config.instance("web1").primary_node
    assert cluster.config.node(home).name == "node2"


async def test_nothing_is_left_where_the_agent_was_only_started_anew(
    cluster: SimCluster,
) -> None:
    _agent_is_away(cluster, 12, "node1", LEAVING)
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE))
    assert job.status == "success"
    said = [str(line[-1]) for line in job.ops[0].log]
    assert not [line for line in said if "Warning" in line]
    assert any(line.startswith("Waiting for node node1 (") for line in said)
    uuid = cluster.config.instance("web1").uuid
    assert f"node1 {uuid}" not in cluster.nodes.san.guests


async def test_one_that_stays_away_holds_a_job_up_once(cluster: SimCluster) -> None:
    rests = _agent_is_away(cluster, 1_000_000, "node1", LEAVING)
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE))
    assert job.status == "success"
    warnings = [line for line in job.ops[0].log if "Warning" in str(line[-1])]
    assert len(warnings) > 1
    waited = sum(rests)
    assert 10 <= waited <= 15 + 3 * len(warnings)
