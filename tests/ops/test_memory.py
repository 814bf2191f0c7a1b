# SPDX-License-Identifier: BSD-2-Clause
"""An instance starts, or gets more memory, only where its node has it."""

import pytest

from moorage.errors import NoCapacity
from moorage.testing.cluster import ClusterBuilder, SimCluster

NODE = 65536
"""MiB of a simulated node."""


@pytest.fixture
async def sim(tmp_path):
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2))
    yield cluster
    await cluster.stop()


def adding(name, memory, **more):
    return {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": name,
        "pnode": "node1",
        "disk_template": "diskless",
        "beparams": {"memory": memory},
        "ignore_ipolicy": True,
    } | more


def on(op_id, name, **more):
    return {"OP_ID": op_id, "instance_name": name} | more


async def sleepers(sim, *names, memory=25_000):
    for name in names:
        assert not await sim.at_once(adding(name, memory, start=False))


def up(sim):
    found = (sim.config.instance(f"w{at}") for at in range(4))
    return [one.name for one in found if one.admin_state == "up"]


@pytest.mark.requirement("S2-13")
@pytest.mark.parametrize("op_id", ["OP_INSTANCE_STARTUP", "OP_INSTANCE_REBOOT"])
async def test_sleepers_that_start_at_once_do_not_overfill_their_node(sim, op_id):
    await sleepers(sim, *(f"w{at}" for at in range(4)))
    found = await sim.at_once(*(on(op_id, f"w{at}") for at in range(4)))
    assert len(up(sim)) == 2
    assert len(found) == 2
    assert all(isinstance(error, NoCapacity) for error in found)
    assert "memory (asked 25000 MiB" in found[0].message
    assert found[0].hint == "to do it all the same: --ignore-capacity"
    left = next(f"w{at}" for at in range(4) if f"w{at}" not in up(sim))
    assert not await sim.at_once(on(op_id, left, ignore_capacity=True))
    assert left in up(sim)


async def test_a_start_and_an_add_at_once_share_the_memory(sim):
    await sleepers(sim, "w0", memory=40_000)
    both = (on("OP_INSTANCE_STARTUP", "w0"), adding("w1", 40_000))
    (error,) = await sim.at_once(*both)
    assert isinstance(error, NoCapacity)


async def test_what_should_run_starts_again_whatever_else_is_on_record(sim):
    """All of a node's guests ended: each comes back, on an overfull node too."""
    for at in range(3):
        made = adding(f"w{at}", 25_000, ignore_capacity=True)
        assert not await sim.at_once(made)
    machine = sim.nodes.nodes["node1"]
    for at in range(3):
        await machine.hypervisor.stop(sim.config.instance(f"w{at}").uuid, 0)
    starts = (on("OP_INSTANCE_STARTUP", f"w{at}") for at in range(3))
    assert not await sim.at_once(*starts)


async def test_more_memory_for_one_run_is_asked_of_the_node(sim):
    await sleepers(sim, "w0", "w1", "w2", "w3", memory=1000)
    first = on("OP_INSTANCE_STARTUP", "w0", beparams={"memory": 40_000})
    second = on("OP_INSTANCE_STARTUP", "w1", beparams={"memory": 40_000})
    (error,) = await sim.at_once(first, second)
    assert isinstance(error, NoCapacity)
    huge = on("OP_INSTANCE_STARTUP", "w2", beparams={"memory": NODE * 2})
    (error,) = await sim.at_once(huge)
    assert f"asked {NODE * 2} MiB" in error.message


@pytest.mark.requirement("S2-13")
async def test_memory_that_is_raised_at_once_does_not_overfill_the_node(sim):
    for at in range(3):
        assert not await sim.at_once(adding(f"w{at}", 10_000))
    raised = [
        on("OP_INSTANCE_SET_PARAMS", f"w{at}", beparams={"memory": 30_000})
        for at in range(3)
    ]
    found = await sim.at_once(*(one | {"ignore_ipolicy": True} for one in raised))
    assert len(found) == 2
    assert all("asked 20000 MiB" in error.message for error in found)
    assert all("--ignore-capacity" in error.hint for error in found)
    anyway = {"ignore_ipolicy": True, "ignore_capacity": True}
    assert not await sim.at_once(*(one | anyway for one in raised))


async def test_less_memory_needs_no_room(sim):
    assert not await sim.at_once(adding("w0", 70_000, ignore_capacity=True))
    less = on("OP_INSTANCE_SET_PARAMS", "w0", beparams={"memory": 66_000})
    assert not await sim.at_once(less | {"ignore_ipolicy": True})


async def test_a_sleeper_is_looked_at_when_it_starts(sim):
    await sleepers(sim, "w0", memory=1000)
    fields = {"beparams": {"memory": 600 * 1024}, "ignore_ipolicy": True}
    assert not await sim.at_once(on("OP_INSTANCE_SET_PARAMS", "w0", **fields))
    (error,) = await sim.at_once(on("OP_INSTANCE_STARTUP", "w0"))
    assert isinstance(error, NoCapacity)
