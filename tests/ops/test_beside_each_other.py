# SPDX-License-Identifier: BSD-2-Clause
"""Two requests for one thing, at once: one of them waits, and looks when it is done."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import WrongState, from_json
from moorage.model import Instance, Node
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

TURNS = 300
"""Turns of the loop in which a job that waits for nobody is over."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    found = await harbour(tmp_path)
    yield found
    await found.stop()


def attached(name: str) -> dict[str, Any]:
    return {"OP_ID": "OP_DISK_ATTACH", "disk": "spare", "instance_name": name}


def given_card(name: str, ip: str) -> dict[str, Any]:
    card = [["add", "-1", {"network": "lan", "ip": ip}]]
    return {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": name, "nics": card}


async def test_one_of_two_instances_gets_a_disk(cluster: SimCluster) -> None:
    (error,) = await cluster.at_once(attached("web1"), attached("web2"))
    assert isinstance(error, WrongState)
    assert "disk spare is attached to instance web" in error.message
    spare = cluster.config.disk("spare")
    owners = [one for one in cluster.config.all(Instance) if spare.uuid in one.disks]
    assert len(owners) == 1


async def test_two_running_instances_get_different_addresses(
    cluster: SimCluster,
) -> None:
    """Cards are plugged before they are recorded: both jobs are between the two."""
    both = given_card("web1", "pool"), given_card("web2", "pool")
    assert await cluster.at_once(*both) == []
    web1, web2 = map(cluster.config.instance, ("web1", "web2"))
    found = [nic.ip for nic in (*web1.nics, *web2.nics) if nic.network]
    assert len(found) == 3
    assert len(set(found)) == 3


async def test_a_node_is_not_removed_while_an_instance_comes_to_it(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node2", master_candidate=False)
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web2")
    came, seen = list[int](), list[str]()
    remove = {"OP_ID": "OP_NODE_REMOVE", "node_name": "node2"}

    async def come(name: str) -> None:
        if came or not name.startswith("before start late"):
            return
        came.append(await cluster.engine.submit([remove]))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        seen.append(cluster.engine.job(came[0]).ops[0].status)

    cluster.extra_point = come
    new = {"pnode": "node2", "disk_template": "diskless", "disks": []}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="late", **new)
    assert seen == ["waiting"]
    job = await cluster.finished(came[0])
    error = from_json(job.ops[0].error or {})
    assert isinstance(error, WrongState)
    assert "still has 1 instance: late" in error.message
    assert cluster.config.knows(Node, "node2")
