# SPDX-License-Identifier: BSD-2-Clause
"""Locks of disks: jobs on different ones run side by side, and gnt-debug shows them."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.testing.cluster import ClusterBuilder, SimCluster

PATIENCE = 30.0
"""Seconds, for what takes one."""


class Gate:
    """Holds jobs up between their questions and their work on the volume."""

    def __init__(self, jobs: int) -> None:
        self.waiting: list[str] = []
        self.open, self.full = asyncio.Event(), asyncio.Event()
        self._jobs = jobs

    async def point(self, name: str) -> None:
        if name.startswith("before grow disk"):
            self.waiting.append(name.split()[3])
            if len(self.waiting) == self._jobs:
                self.full.set()
            await self.open.wait()


@pytest.mark.requirement("S3-50")
async def test_jobs_on_different_detached_disks_run_side_by_side(
    typed: Any, tmp_path: Path
) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder().disk("a").disk("b"))
    for name in ("a", "b"):
        volume = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes[f"vol-{name}"] = volume
    gate = Gate(2)
    cluster.extra_point = gate.point
    with tempfile.TemporaryDirectory() as directory:
        server = LuxiServer(
            Sources(cluster.truth, cluster.nodes, cluster.engine),
            Path(directory) / "luxi.sock",
        )
        await server.start()

        async def types(line: str) -> str:
            found = {"MOORAGE_SOCKET": f"{directory}/luxi.sock"}
            screen = await asyncio.to_thread(typed, line, **found)
            assert screen.status == 0, screen.err
            return str(screen.out)

        for name in ("a", "b", "b"):
            await types(f"gnt-disk grow --submit {name} 1G")
        await asyncio.wait_for(gate.full.wait(), PATIENCE)
        assert sorted(gate.waiting) == ["a", "b"]  # neither waits for the other
        rows = json.loads(await types("gnt-debug locks --json"))
        locks = {row["name"]: row for row in rows}
        assert locks["disk/a"]["mode"] == locks["disk/b"]["mode"] == "exclusive"
        assert locks["disk/a"]["owner"] != locks["disk/b"]["owner"]
        assert (locks["disk/a"]["pending"], len(locks["disk/b"]["pending"])) == ([], 1)
        shown = await types("gnt-debug locks --no-headers -o name,mode")
        assert "disk/a" in shown
        gate.open.set()
        for number in (1, 2, 3):
            assert (await cluster.finished(number)).status == "success"
        assert json.loads(await types("gnt-debug locks --json")) == []
        await server.stop()
    await cluster.stop()
    assert cluster.config.disk("b").size == 3072
