# SPDX-License-Identifier: BSD-2-Clause
"""Answers about more objects than may be looked at while everybody else waits."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import MANY, RESOURCES, Sources, query, rows
from moorage.testing.cluster import ClusterBuilder, SimCluster

FIELDS = ["name", "size", "instance"]


async def test_a_long_list_is_what_a_short_one_would_be(tmp_path: Path) -> None:
    """It is looked up and encoded by threads, for both kinds of query."""
    builder = ClusterBuilder()
    for number in range(MANY + 300):
        builder.disk(f"d{number}", size=number + 1)
    builder.instance("wé1", disks=("d7",))
    (tmp_path / "nodes").mkdir()
    sim = await SimCluster.start(tmp_path / "nodes", builder)
    sources = Sources(sim.config_store, sim.nodes, sim.engine)
    server = LuxiServer(sources, tmp_path / "luxi.sock")
    await server.start()

    def asked() -> Any:
        with LuxiClient(str(tmp_path / "luxi.sock")) as luxi:
            names = [f"d{number}" for number in range(MANY + 300)]
            return luxi.query("disk", FIELDS)[1], luxi.call(
                "Query", "disk", FIELDS, ["|", *(["=", "name", n] for n in names)]
            )["data"]

    every, named = await asyncio.to_thread(asked)
    await server.stop()
    scene, disk = sources.snapshot(), RESOURCES["disk"]
    order = sorted(disk.every(scene), key=disk.order)
    fields = [disk.find(name) for name in FIELDS]
    wanted = [[tuple(cell) for cell in row] for row in rows(fields, order, scene)]
    assert every == wanted
    assert [[tuple(cell) for cell in row] for row in named] == wanted
    assert every[7][2] == (0, "wé1")
    await sim.stop()


async def test_others_have_their_turn_while_much_is_looked_at(tmp_path: Path) -> None:
    """And a short list is answered at once: a thread would only cost time."""
    turns: dict[int, int] = {}
    for number in (3, MANY):
        builder = ClusterBuilder()
        for name in range(number):
            builder.disk(f"d{name}")
        sim = await SimCluster.start(tmp_path / str(number), builder)
        asked = query(
            "disk", FIELDS, None, Sources(sim.config_store, sim.nodes, sim.engine)
        )
        turns[number] = await _turns_during(asked)
        await sim.stop()
    assert turns[3] == 0
    assert turns[MANY] > 0


async def _turns_during(work: Coroutine[Any, Any, object]) -> int:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(other())
    await work
    counting.cancel()
    return turns
