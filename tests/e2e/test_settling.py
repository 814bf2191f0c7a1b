# SPDX-License-Identifier: BSD-2-Clause
"""A new master: nodes forget the fences of disks that are no more, and no others."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from moorage.api.query import Sources
from moorage.daemons import settling, standby
from moorage.model import Change, successor
from moorage.protocol import GetStanding
from moorage.testing.cluster import ClusterBuilder, SimCluster

ADD = {"disk_template": "ext", "provider": "san", "size": 4}


async def made(directory: Path) -> SimCluster:
    """Return a cluster where one disk was attached and is gone, and another is not."""
    cluster = await SimCluster.start(directory, ClusterBuilder().instance("web"))
    for name in ("gone", "kept"):
        await cluster.run("OP_DISK_ADD", name=name, **ADD)
        await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
        await cluster.run("OP_DISK_ATTACH", disk=name, instance_name="web")
        await cluster.run("OP_DISK_DETACH", disk=name)
        await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web", timeout=0)
    await cluster.run("OP_DISK_REMOVE", disk="gone")
    for path in directory.rglob("fence/*"):
        os.utime(path, (1, 1))  # long ago
    return cluster


def fences(directory: Path) -> set[str]:
    return {path.name for path in (directory / "node1/fence").iterdir()} - {"term"}


async def test_nodes_forget_what_is_no_more(tmp_path: Path) -> None:
    cluster = await made(tmp_path)
    kept = f"disk-{cluster.config.disk('kept').uuid}"
    assert len(fences(tmp_path)) == 2
    at = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    await settling.tell_nodes(at)
    assert fences(tmp_path) == {kept}
    await cluster.stop()


async def test_a_silent_node_holds_up_no_other(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(6))
    call, told, all_others = cluster.nodes.call, set[str](), asyncio.Event()

    async def listening(node: Any, *more: Any) -> Any:
        if node.name == "node1":
            await asyncio.Event().wait()
        found = await call(node, *more)
        told.add(node.name)
        if len(told) == 5:
            all_others.set()
        return found

    cluster.nodes.call = listening  # type: ignore[method-assign]
    at = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    telling = asyncio.create_task(settling.tell_nodes(at))
    async with asyncio.timeout(10):
        await all_others.wait()
    assert not telling.done()
    telling.cancel()
    await cluster.stop()


async def test_disks_of_unfinished_jobs_are_known(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path)
    number = await cluster.submit("OP_DISK_ADD", name="new", **ADD)
    seen = set()

    async def look(_name: str) -> None:
        seen.update(settling.under_way([cluster.engine.job(number)]))

    cluster.extra_point = look
    await cluster.finished(number)
    assert seen == {cluster.config.disk("new").uuid}
    assert set(settling.under_way([cluster.engine.job(number)])) == set()
    await cluster.stop()


async def test_candidates_hear_a_master_that_sends_no_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Again and again, and one that hangs keeps the others from nothing."""
    monkeypatch.setattr(standby, "_SIGN", 0.01)
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(3))
    node = cluster.config.node("node3")
    demoted = successor(node, 1.0, master_candidate=False)
    await cluster.config_store.commit(Change((demoted,)))
    heard, thrice = Counter[str](), asyncio.Event()

    async def listening(node: Any, call: Any, *_: Any) -> None:
        assert isinstance(call, GetStanding)
        heard[node.name] += 1
        if node.name == "node1":
            await asyncio.Event().wait()
        if heard["node2"] == 3:
            thrice.set()

    cluster.nodes.call = listening  # type: ignore[method-assign]
    at = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    showing = asyncio.create_task(standby.show_life(at))
    async with asyncio.timeout(10):
        await thrice.wait()
    assert "node3" not in heard
    showing.cancel()
    await cluster.stop()
