# SPDX-License-Identifier: BSD-2-Clause
"""What clients are told while the master cannot write its store."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.errors import Failed, MoorageError, Unreachable
from moorage.store import MemoryStore, StoreError, Write
from moorage.testing.cluster import ClusterBuilder, SimCluster

GROW = {"OP_ID": "OP_DISK_GROW", "disk": "data1", "amount": 8}
FULL = "the store in /var/lib/moorage (its file system is full): no room"


class FullStore(MemoryStore):
    """A store on a full file system."""

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        del writes, expected
        raise StoreError(FULL)


async def asked(path: Path, *call: Any) -> Any:
    def ask() -> Any:
        with LuxiClient(str(path)) as client:
            return client.call(*call)

    return await asyncio.to_thread(ask)


async def test_a_master_without_a_store_says_why(tmp_path: Path) -> None:
    server = LuxiServer(None, tmp_path / "luxi")
    server.excuse = lambda: Unreachable(f"the master waits: {FULL}", hint="make room")
    await server.start()
    for call in (("Query", "node", ["name"]), ("SubmitJob", [GROW])):
        with pytest.raises(Unreachable, match="its file system is full") as caught:
            await asked(server.path, *call)
        assert caught.value.hint == "make room"
    sim = await SimCluster.start(tmp_path / "sim", ClusterBuilder().disk("data1"))
    server.sources = Sources(sim.config_store, sim.nodes, sim.engine)
    assert await asked(server.path, "SubmitJob", [GROW])
    await server.stop()
    await sim.stop()


@pytest.mark.parametrize(
    "call", [("SubmitJob", [GROW]), ("SetDrainFlag", True)], ids=["submit", "drain"]
)
async def test_whoever_asked_for_a_change_is_told_that_nobody_knows(
    tmp_path: Path, call: tuple[Any, ...]
) -> None:
    sim = await SimCluster.start(tmp_path / "sim", ClusterBuilder().disk("data1"))
    server = LuxiServer(
        Sources(sim.config_store, sim.nodes, sim.engine), tmp_path / "luxi"
    )
    await server.start()
    sim.config_store._store = FullStore()
    with pytest.raises(MoorageError, match="may have been taken or not") as caught:
        await asked(server.path, *call)
    assert isinstance(caught.value, Failed)
    assert FULL in caught.value.message
    assert sim.engine.jobs == {}
    assert not sim.engine.queue.draining
    await server.stop()
    await sim.stop()


async def test_no_answer_is_given_by_who_looks_and_leads_no_more(
    tmp_path: Path,
) -> None:
    """The lead may have run out while the answer was made."""
    sim = await SimCluster.start(tmp_path / "sim", ClusterBuilder().node("node1"))
    sources = Sources(sim.config_store, sim.nodes, sim.engine)
    server = LuxiServer(sources, tmp_path / "luxi")
    await server.start()
    assert await asked(server.path, "Query", "node", ["name"])

    def look() -> None:
        raise ConnectionAbortedError("the lead is over")

    server.look = look
    with pytest.raises(Unreachable, match="closed the connection"):
        await asked(server.path, "Query", "node", ["name"])
    await server.stop()
    await sim.stop()
