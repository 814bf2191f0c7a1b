# SPDX-License-Identifier: BSD-2-Clause
"""Parallel requests of every kind that take memory or room: no node gets too much."""

import asyncio
import random
from functools import partial

import pytest

from moorage.errors import from_json
from moorage.model import Disk, Instance
from moorage.ops.asking.node_tasks import beparams
from moorage.testing.cluster import ClusterBuilder, SimCluster
from support.sampling import EVERY_OTHER, sampled

MEMORY = 65536
"""MiB of a node."""
POOL = 4000
"""MiB of the directory that all nodes share."""
NODES = ("node1", "node2", "node3")
NAMES = tuple(f"w{at}" for at in range(8))
DISKS = tuple(f"d{at}" for at in range(4))
SIZES = (6000, 12_000, 18_000, 25_000)
ROUNDS = 8
"""Bursts of requests in one run."""


class Watched:
    """A cluster of which every step is watched.

    Attributes
    ----------
    wrong
        What was too much, and when.
    """

    def __init__(self, sim):
        self.sim = sim
        self.wrong = []
        sim.extra_point = self._look
        for node in sim.nodes.nodes.values():
            node.machine.room, node.machine.used = POOL, self._used
            node.machine.busy = partial(self._running, node.name)

    async def _look(self, step):
        for node in NODES:
            memory = self._running(node)
            if memory > MEMORY:
                self.wrong.append(f"{step}: {memory} MiB run on {node}")
        if self._used() > POOL:
            self.wrong.append(f"{step}: {self._used()} MiB of files")

    def _running(self, node):
        """Return the memory of a node's guests, of which each has touched all."""
        guests = self.sim.nodes.san.guests
        mine = [key for key in guests if key.startswith(f"{node} ")]
        return sum(guests[key]["state"]["memory"] for key in mine)

    def _used(self):
        files = self.sim.nodes.san.files
        return sum(files[key]["size"] for key in files) // 1024**2

    def on_record(self):
        """Return the memory of those that should run, by node."""
        config = self.sim.config
        found = dict.fromkeys(NODES, 0)
        for one in config.all(Instance):
            if one.admin_state == "up":
                found[one.primary_node] += int(beparams(config, one)["maxmem"])
        return found


def _request(dice):
    instance = {"instance_name": dice.choice(NAMES)}
    disk = {"disk": dice.choice(DISKS)}
    target = {"target_node": dice.choice(NODES)} if dice.random() < 0.6 else {}
    memory = {"beparams": {"memory": dice.choice(SIZES)}}
    place = {"pnode": dice.choice(NODES)} if dice.random() < 0.5 else {}
    made = {"disk_template": "sharedfile", "disks": [{"size": dice.choice([200, 900])}]}
    sleeping = {"start": dice.random() < 0.6}
    return dice.choice(
        [
            ("OP_INSTANCE_CREATE", instance | memory | place | made | sleeping),
            ("OP_INSTANCE_CREATE", instance | memory | place | made | sleeping),
            ("OP_INSTANCE_MIGRATE", instance | target),
            ("OP_INSTANCE_FAILOVER", instance | target),
            ("OP_INSTANCE_STARTUP", instance),
            ("OP_INSTANCE_STARTUP", instance | memory),
            ("OP_INSTANCE_REBOOT", instance),
            ("OP_INSTANCE_SHUTDOWN", instance),
            ("OP_INSTANCE_SET_PARAMS", instance | memory | {"ignore_ipolicy": True}),
            ("OP_INSTANCE_SET_PARAMS", instance | {"disks": [["add", {"size": 500}]]}),
            ("OP_NODE_EVACUATE", {"node_name": dice.choice(NODES), "mode": "all"}),
            ("OP_NODE_FAILOVER", {"node_name": dice.choice(NODES)}),
            ("OP_DISK_ADD", _disk(dice)),
            ("OP_DISK_GROW", disk | {"amount": dice.choice([100, 700])}),
            ("OP_DISK_SNAPSHOT", disk),
            ("OP_CLUSTER_VERIFY", {}),
        ]
    )


def _disk(dice):
    size = dice.choice([300, 900])
    return {"name": dice.choice(DISKS), "disk_template": "sharedfile", "size": size}


async def _burst(sim, dice):
    """Submit some requests at once; return what the refusals said."""
    opcodes = [_request(dice) for _ in range(dice.randrange(2, 9))]
    numbers = [
        await sim.engine.submit([{"OP_ID": op_id, **fields}])
        for op_id, fields in opcodes
    ]
    await asyncio.gather(*(sim.finished(number) for number in numbers))
    while [one for one in sim.engine.jobs.values() if not one.finished]:
        await asyncio.gather(*(sim.finished(at) for at in list(sim.engine.jobs)))
    ended = [op for number in numbers for op in sim.engine.job(number).ops]
    return [str(from_json(op.error)) for op in ended if op.error]


async def _run(directory, seed):
    dice = random.Random(seed)  # noqa: S311
    watched = Watched(await SimCluster.start(directory, ClusterBuilder()))
    refused = []
    for _ in range(ROUNDS):
        refused += await _burst(watched.sim, dice)
        assert max(watched.on_record().values()) < MEMORY
        assert sum(one.size for one in watched.sim.config.all(Disk)) <= POOL
    await watched.sim.stop()
    assert watched.wrong == []
    assert not [text for text in refused if "internal error" in text]


@pytest.mark.requirement("S2-13")
@pytest.mark.parametrize("seed", range(8))
async def test_no_node_gets_more_than_it_has(tmp_path, seed):
    await _run(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(100, 300), EVERY_OTHER, "capacity"))
async def test_no_node_gets_more_than_it_has_at_length(tmp_path, seed):
    await _run(tmp_path, seed)
