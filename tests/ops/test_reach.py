# SPDX-License-Identifier: BSD-2-Clause
"""Verify lets nodes try whether they reach each other, at a bounded cost."""

import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.images import Images
from moorage.ops.cluster import checks_networks
from moorage.testing.cluster import ClusterBuilder, SimCluster

PER_NODE = 3


async def made(directory: Path, count: int = 3) -> SimCluster:
    cluster = SimCluster(directory)
    await cluster.make(ClusterBuilder(count))
    return cluster


async def test_a_node_that_is_not_reached_is_named_with_who_tried(
    tmp_path: Path,
) -> None:
    cluster = await made(tmp_path)
    there = cluster.config.node("node3").secondary_ip
    machine = cluster.nodes.nodes["node2"].machine
    machine.unreached[there] = "no answer in 3 s"
    found = (await cluster.run("OP_CLUSTER_VERIFY"))["errors"]
    (told,) = [one for one in found if one["ecode"] == "ENODENET"]
    assert told["object"] == "node node2"
    said = f"it does not reach node node3 at {there}: no answer in 3 s"
    assert told["message"].startswith(said)
    assert told["hint"] == f"on node2: ping {there}"
    await cluster.stop()


async def test_a_node_that_says_nothing_is_not_told_twice(tmp_path: Path) -> None:
    cluster = await made(tmp_path)
    there = cluster.config.node("node3").secondary_ip
    for name in ("node1", "node2"):
        cluster.nodes.nodes[name].machine.unreached[there] = "No route to host"
    cluster.nodes.cut_power("node3")
    found = (await cluster.run("OP_CLUSTER_VERIFY"))["errors"]
    assert "ENODENET" not in {one["ecode"] for one in found}
    await cluster.stop()


@pytest.mark.parametrize("count", [1, 2, 3, 40])
async def test_each_node_tries_few_and_is_tried(tmp_path: Path, count: int) -> None:
    cluster = await made(tmp_path, count)
    asked = list(checks_networks.ask(cluster.config))
    tried = Counter(peer.name for one in asked for peer in one.call.peers)
    most = min(PER_NODE, count - 1)
    assert [len(one.call.peers) for one in asked] == [most] * (count if most else 0)
    assert set(tried.values()) <= {most}
    for one in asked:
        assert cluster.config.node(one.node).name not in map(_name, one.call.peers)
    await cluster.stop()


def _name(peer: Any) -> str:
    return str(peer.name)


async def test_a_machine_is_reached_that_says_that_nobody_listens(
    tmp_path: Path,
) -> None:
    machine = LocalMachine(
        tmp_path, Providers([], tmp_path / "p"), [], Images("n", tmp_path, [])
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert await machine.reach("127.0.0.1", port, "127.0.0.1") == ""
    assert await machine.reach("127.0.0.1", port, "") == ""
    assert "address" in await machine.reach("127.0.0.1", port, "192.0.2.77")
