# SPDX-License-Identifier: BSD-2-Clause
"""A master whose candidates are simulated nodes with real copies on their disks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from candidates import Town, led
from moorage.store import MemoryStore, create
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.nodes import SimNodes


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """Return a master on node1 with two candidates and a node that is none."""
    builder = ClusterBuilder(3).node("node4", master_candidate=False)
    store = MemoryStore()
    await create(store, builder.change())
    nodes = SimNodes(tmp_path)
    for number in range(1, 5):
        nodes.add(f"node{number}")
    found = await led(tmp_path, nodes, store)
    await found.whole("node2", "node3")
    yield found
    await found.stop()
