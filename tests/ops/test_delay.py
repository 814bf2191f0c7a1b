# SPDX-License-Identifier: BSD-2-Clause
"""OP_TEST_DELAY: where it waits, what it holds, and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.errors import BadInput, NotFound
from moorage.testing.cluster import SimCluster


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


@pytest.mark.parametrize(
    ("fields", "calls"),
    [
        ({}, ["node1"]),
        ({"on_nodes": ["node2"]}, ["node1", "node2"]),
        ({"on_master": False, "on_nodes": ["node2", "node3"]}, ["node2", "node3"]),
        ({"on_master": False, "on_node_uuids": ["node3"]}, ["node3"]),
        ({"repeat": 2}, ["node1", "node1"]),
        ({"interruptible": True, "no_locks": True}, ["node1"]),
    ],
)
async def test_where_it_waits(sim, fields, calls):
    await sim.run("OP_TEST_DELAY", duration=0.0, **fields)
    assert [node for node, verb in sim.nodes.calls if verb == "delay"] == calls


@pytest.mark.parametrize(
    "fields",
    [
        {"duration": -1},
        {"duration": 1e9},
        {"duration": 0, "repeat": -1},
        {"duration": 0, "repeat": 1001},
    ],
)
async def test_what_makes_no_sense_is_refused(sim, fields):
    assert isinstance(await sim.refused("OP_TEST_DELAY", **fields), BadInput)


async def test_a_node_that_is_not_known_is_refused(sim):
    error = await sim.refused("OP_TEST_DELAY", duration=0, on_nodes=["nowhere"])
    assert isinstance(error, NotFound)


async def started(sim, **fields):
    """Submit a long delay, and wait until it is under way."""
    number = await sim.submit("OP_TEST_DELAY", duration=3600, **fields)
    for _ in range(100):
        await asyncio.sleep(0)
    assert sim.engine.job(number).status == "running"
    return number


async def test_a_cancel_ends_it(sim):
    number = await started(sim)
    assert (await sim.engine.cancel(number))[0]
    assert (await sim.finished(number)).status == "canceled"
    sim.nodes.under_way.pop().cancel()


@pytest.mark.parametrize("no_locks", [False, True])
async def test_it_holds_its_nodes_unless_told_otherwise(sim, no_locks):
    number = await started(sim, on_master=False, on_nodes=["node2"], no_locks=no_locks)
    held = [row["name"] for row in sim.engine.locks.rows()]
    assert held == ([] if no_locks else ["node/node2"])
    await sim.engine.cancel(number)
    await sim.finished(number)
    sim.nodes.under_way.pop().cancel()
