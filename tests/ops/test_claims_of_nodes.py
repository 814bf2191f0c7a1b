# SPDX-License-Identifier: BSD-2-Clause
"""What a node claims hurts nobody else.

One node's word that another master leads stops nobody; the word of all does. Numbers
that no machine has fail no command that is about others.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, to_builtins

from moorage.errors import Stale
from moorage.model import NodeFacts
from moorage.testing.cluster import ClusterBuilder, SimCluster

NODES = ("node1", "node2", "node3")


def stale(name: str) -> Stale:
    """Return what the master makes of a node that refuses it."""
    return Stale(
        f"node {name} refuses this master: a master of term 9 has spoken",
        hint="gnt-cluster verify",
        term=3,
        seen=9,
    )


async def cluster(directory: Path, *refusing: str) -> SimCluster:
    builder = ClusterBuilder(3).instance("web", "node2")
    found = await SimCluster.start(directory, builder)
    call = found.nodes.call

    async def ask(node: Any, *more: Any) -> Any:
        if node.name in refusing:
            raise stale(node.name)
        return await call(node, *more)

    found.nodes.call = ask  # type: ignore[method-assign]
    return found


async def test_one_node_stops_no_master(tmp_path: Path) -> None:
    """Whoever has its key could say so."""
    found = await cluster(tmp_path, "node3")
    (one,) = (await found.run("OP_CLUSTER_VERIFY"))["errors"]
    assert one["object"] == "node node3"
    assert "a master of term 9 has spoken; 2 other nodes take orders" in one["message"]
    assert "moorage master stop" not in one["hint"]
    assert "--offline" not in one["hint"]
    await found.run("OP_INSTANCE_STARTUP", instance_name="web")
    await found.stop()


async def test_what_all_nodes_say_is_believed(tmp_path: Path) -> None:
    found = await cluster(tmp_path, *NODES)
    told = (await found.run("OP_CLUSTER_VERIFY"))["errors"]
    (one,) = [each for each in told if each["object"] == "cluster"]
    assert "another one was heard by 3 nodes, and none listens" in one["message"]
    assert one["hint"] == "moorage master stop"
    await found.stop()


@pytest.mark.parametrize("refusing", [("node2",), NODES], ids=["its node", "all"])
async def test_a_request_that_is_refused_ends_with_the_reason(
    tmp_path: Path, refusing: tuple[str, ...]
) -> None:
    found = await cluster(tmp_path, *refusing)
    told = await found.refused("OP_INSTANCE_STARTUP", instance_name="web")
    assert "node node2 refuses this master" in told.message
    assert "stop" not in told.hint
    await found.stop()


@pytest.mark.parametrize("number", [1 << 70, -1, 0], ids=["huge", "negative", "none"])
@pytest.mark.parametrize("what", ["memory_total", "memory_free", "cpus", "units"])
async def test_odd_numbers_of_one_node_fail_no_command(
    tmp_path: Path, what: str, number: int
) -> None:
    found = await SimCluster.start(tmp_path, ClusterBuilder(3).instance("web", "node2"))
    call = found.nodes.call

    async def ask(node: Any, *more: Any) -> Any:
        told = await call(node, *more)
        if node.name != "node3" or more[0].verb != "facts":
            return told
        values = to_builtins(told)
        units = [_spoilt(one, number) for one in values["units"]]
        odd = units if what == "units" else number
        return convert({**values, what: odd}, NodeFacts)

    found.nodes.call = ask  # type: ignore[method-assign]
    await found.run("OP_CLUSTER_VERIFY")
    await found.run("OP_INSTANCE_STARTUP", instance_name="web")
    made = {"instance_name": "new", "disk_template": "diskless", "disks": []}
    await found.run("OP_INSTANCE_CREATE", mode="create", nics=[], start=False, **made)
    await found.run("OP_NODE_EVACUATE", node_name="node2", mode="all")
    await found.stop()


def _spoilt(unit: dict[str, Any], number: int) -> dict[str, Any]:
    return {k: number if type(v) is int else v for k, v in unit.items()}
