# SPDX-License-Identifier: BSD-2-Clause
"""A cluster of four nodes that asks allocators from a shelf."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from allocating import Shelf, asks, shelf
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
def programs() -> Iterator[Shelf]:
    with shelf() as found:
        yield found


@pytest.fixture
async def sim(tmp_path: Path, programs: Shelf) -> AsyncIterator[SimCluster]:
    cluster = await asks(tmp_path, programs, ClusterBuilder(4))
    yield cluster
    await cluster.stop()
