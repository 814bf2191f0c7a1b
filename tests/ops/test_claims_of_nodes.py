# SPDX-License-Identifier: BSD-2-Clause
"""One node's word that another master leads stops nobody; the word of all does."""

from pathlib import Path
from typing import Any

import pytest

from moorage.errors import Stale
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
    assert "3 nodes have heard another one, and none listens" in one["message"]
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
