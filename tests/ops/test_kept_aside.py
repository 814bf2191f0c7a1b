# SPDX-License-Identifier: BSD-2-Clause
"""Copies of mirrored disks that are lost to nobody: old ones, and those that lag."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mirrored import mirrored

from moorage.storage import Command
from moorage.testing.cluster import SimCluster

REPLACE = "OP_INSTANCE_REPLACE_DISKS"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await mirrored(tmp_path, "a", "first")
    yield cluster
    await cluster.stop()


def written(cluster: SimCluster) -> dict[str, str]:
    """Return what is on the volume with the data of each node."""
    volumes = cluster.nodes.san.logical.items()
    return {key.split(" ")[0]: v["data"] for key, v in volumes if key[-5:] == "_data"}


def aside(cluster: SimCluster) -> list[str]:
    return [key for key in cluster.nodes.san.logical if key.endswith("_replaced")]


def failing(cluster: SimCluster, node: str, word: str, of: str = "") -> None:
    def refuse(_node: str, command: Command) -> bool:
        return word in command.argv and command.argv[-1].endswith(of)

    cluster.nodes.nodes[node].machine.refuse = refuse


def working(cluster: SimCluster, node: str) -> None:
    cluster.nodes.nodes[node].machine.refuse = lambda _node, _command: False


@pytest.mark.parametrize("mode", ["replace_on_primary", "replace_on_secondary"])
async def test_an_old_copy_that_stayed_never_comes_back(
    cluster: SimCluster, mode: str
) -> None:
    node = "node2" if mode == "replace_on_primary" else "node3"
    failing(cluster, node, "lvremove", "_replaced")
    web: dict[str, Any] = {"instance_name": "web", "mode": mode}
    await cluster.run(REPLACE, **web)
    working(cluster, node)
    assert len(aside(cluster)) == 2
    cluster.nodes.san.drbd.write("node2", 0, "second")
    assert written(cluster) == {"node2": "second", "node3": "second"}
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    failing(cluster, node, "connect")  # so the new copy is never the same
    await cluster.refused(REPLACE, **web)
    working(cluster, node)
    assert written(cluster) == {"node2": "second", "node3": "second"}
    await cluster.run("OP_DISK_SET_PARAMS", disk="a", lift_quarantine=True)
    await cluster.run(REPLACE, **web)
    assert aside(cluster) == []
    assert written(cluster) == {"node2": "second", "node3": "second"}


async def test_a_copy_that_lags_does_not_become_the_only_one(
    cluster: SimCluster,
) -> None:
    """The first copy failed under a running guest: the second has what it wrote."""
    san = cluster.nodes.san
    meta = san.mirrors["node2 0"]["meta"]
    san.logical[meta] |= {"md": san.logical[meta]["md"] | {"good": False}}
    data = san.mirrors["node2 0"]["data"]
    san.logical[data] |= {"data": "torn"}
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    md = san.logical[meta]["md"]
    san.logical[meta] |= {"md": md | {"gi": "", "past": []}}
    san.slow_sync = 5
    web = {"instance_name": "web"}
    refused = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS", disk_template="plain", **web
    )
    assert "gnt-instance activate-disks --wait-for-sync web, then" in refused.hint
    await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", wait_for_sync=True, **web)
    await cluster.run("OP_INSTANCE_DEACTIVATE_DISKS", **web)
    await cluster.run("OP_INSTANCE_SET_PARAMS", disk_template="plain", **web)
    assert written(cluster) == {"node2": "first"}
