# SPDX-License-Identifier: BSD-2-Clause
"""A cluster with a few disks and instances, whose master runs jobs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder().disk("a").disk("b").instance("web").instance("db")
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    for name in ("a", "b"):
        volume = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes[f"vol-{name}"] = volume
    yield cluster
    if cluster.nodes.hold:
        cluster.nodes.hold.set()
    await cluster.stop()
