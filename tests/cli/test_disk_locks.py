# SPDX-License-Identifier: BSD-2-Clause
"""Locks of disks: jobs on different ones run side by side, and gnt-debug shows them."""

import asyncio
import json
import re
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

    def __init__(self, jobs: int, before: str = "grow disk") -> None:
        self.waiting: list[str] = []
        self.open, self.full = asyncio.Event(), asyncio.Event()
        self._jobs, self._before = jobs, f"before {before}"

    async def point(self, name: str) -> None:
        if name.startswith(self._before):
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
            Sources(cluster.config_store, cluster.nodes, cluster.engine),
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


HELD = {
    "rename of a disk in use": ("gnt-disk grow a 1G", "gnt-disk rename a x", "a"),
    "name that is being given": (
        *("gnt-disk rename a x", "gnt-disk rename b x"),
        "detached/x",
    ),
    "name that is going": ("gnt-disk rename a x", "gnt-disk rename b a", "detached/a"),
    "modify with a name": ("gnt-disk grow a 1G", "gnt-disk modify --name x a", "a"),
    "attach of a disk in use": ("gnt-disk grow a 1G", "gnt-disk attach a web1", "a"),
    "attach to one at work": ("gnt-disk grow c 1G", "gnt-disk attach a web1", "web1"),
    "rename in an attach": (
        *("gnt-disk attach a web1", "gnt-disk rename a x"),
        "detached/a",
    ),
    "name that an attached disk leaves": (
        *("gnt-instance modify --disk attach:name=a web1", "gnt-disk rename b a"),
        "detached/a",
    ),
    "name that a detached disk brings": (
        *("gnt-instance modify --disk 0:detach web1", "gnt-disk rename a c"),
        "detached/c",
    ),
    "name that a removed disk has until it is gone": (
        *("gnt-instance modify --disk 0:remove web1", "gnt-disk rename a c"),
        "detached/c",
    ),
}
TAKEN = {"name that is being given", "name that a detached disk brings"}
STEPS = {"grow": "grow", "rename": "rename", "attach": "give", "detach": "take"}
STEPS |= {"remove": "remove"}
"""A job that is held up, the one that must wait for it, and for what."""


@pytest.mark.requirement("S3-50")
@pytest.mark.parametrize("what", HELD)
async def test_who_renames_or_attaches_waits(
    typed: Any, tmp_path: Path, what: str
) -> None:
    """It works with what the first job left, and not beside it."""
    first, second, waits_for = HELD[what]
    builder = ClusterBuilder().instance("web1", disks=("uuid-c",))
    for name in "abc":  # a name is locked apart from the disk that has it
        builder.disk(name, uuid=f"uuid-{name}", by_uuid=True)
    cluster = await SimCluster.start(tmp_path, builder)
    for name in "abc":
        volume = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes[f"vol-{name}"] = volume
    step = next(STEPS[one] for one in re.findall(r"[a-z]+", first) if one in STEPS)
    gate = Gate(1, f"{step} disk")
    cluster.extra_point = gate.point
    with tempfile.TemporaryDirectory() as directory:
        server = LuxiServer(
            Sources(cluster.config_store, cluster.nodes, cluster.engine),
            Path(directory) / "luxi.sock",
        )
        await server.start()

        async def types(line: str) -> str:
            found = {"MOORAGE_SOCKET": f"{directory}/luxi.sock"}
            screen = await asyncio.to_thread(typed, line, **found)
            assert screen.status == 0, screen.err
            return str(screen.out)

        await types(f"{first} --submit")
        await asyncio.wait_for(gate.full.wait(), PATIENCE)
        await types(f"{second} --submit")
        rows = json.loads(await types("gnt-debug locks --json"))
        waiting = {one["name"] for one in rows if one["pending"]}
        known = (f"{kind}/{waits_for}" for kind in ("instance", "disk"))
        assert waiting.intersection((*known, f"disk/uuid-{waits_for}")), waiting
        assert len(gate.waiting) == 1
        gate.open.set()
        assert (await cluster.finished(1)).status == "success"
        status = "error" if what in TAKEN else "success"
        assert (await cluster.finished(2)).status == status
        await server.stop()
    await cluster.stop()
    detached = [disk.name for disk in cluster.config.detached()]
    assert len(set(detached)) == len(detached)
