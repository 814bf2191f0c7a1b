# SPDX-License-Identifier: BSD-2-Clause
"""The master renews what is due, once, and leaves alone what is not."""

from pathlib import Path
from typing import Any

import pytest

from moorage.api.query import Sources
from moorage.daemons.key_renewal import renew_due
from moorage.errors import Unreachable
from moorage.model import NodeFacts
from moorage.protocol import GetFacts
from moorage.testing.cluster import ClusterBuilder, SimCluster

DAY = 86400.0
EXPIRED = Unreachable("it expired", expired=True, silent=False)
SILENT = Unreachable("no answer")


class Showing:
    """Nodes that show certificates of some days; no request for a key is answered."""

    def __init__(self, days: float | Exception | None) -> None:
        self._days = days

    async def call(self, _node: Any, call: Any, *_: Any) -> Any:
        if not isinstance(call, GetFacts):
            raise SILENT
        if isinstance(self._days, Exception):
            raise self._days
        ends = None if self._days is None else self._days * DAY
        return NodeFacts(version="1", certificate_ends=ends)


async def asked_for(
    directory: Path, days: float | Exception | None, pins: tuple[str, ...] = ("a",)
) -> list[str]:
    """Return the nodes that get a job, when all are looked at twice."""
    builder = ClusterBuilder(0).node("node1", pins=pins)
    builder.node("node2", pins=pins, offline=True)
    cluster = await SimCluster.start(directory, builder)
    found = Showing(days)
    at = Sources(cluster.config_store, found, cluster.engine, clock=lambda: 0.0)
    await renew_due(at)
    await renew_due(at)
    inputs = [job.ops[0].input for job in cluster.engine.jobs.values()]
    await cluster.stop()
    return [f"{one['OP_ID']} {one['node_name']}" for one in inputs]


@pytest.mark.parametrize("days", [119, 1, EXPIRED], ids=str)
async def test_what_is_due_is_renewed_once(days: Any, tmp_path: Path) -> None:
    assert await asked_for(tmp_path, days) == ["OP_NODE_RENEW_CRYPTO node1"]


@pytest.mark.parametrize("days", [121, SILENT, None], ids=str)
async def test_what_is_not_due_or_not_there_is_left_alone(
    days: Any, tmp_path: Path
) -> None:
    assert await asked_for(tmp_path, days) == []


async def test_a_node_of_no_known_key_gets_one(tmp_path: Path) -> None:
    found = await asked_for(tmp_path, 3000, pins=())
    assert found == ["OP_NODE_RENEW_CRYPTO node1"]
