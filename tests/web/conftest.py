# SPDX-License-Identifier: BSD-2-Clause
"""A simulated cluster with two instances, and a browser at its door."""

import pytest

from browsing import Browser
from moorage.testing.cluster import SimCluster
from rapi_door import rapi_door

EXT = {"size": 1024, "provider": "san"}


@pytest.fixture
async def door(tmp_path):
    cluster = await SimCluster.start(tmp_path / "sim")
    for number, node in ((1, "node1"), (2, "node2")):
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=f"web{number}",
            disk_template="ext",
            disks=[EXT | {"name": f"root{number}"}],
            pnode=node,
            start=number == 1,
            no_install=True,
            tags=["gold"] if number == 1 else [],
        )
    await cluster.run("OP_DISK_ADD", name="data1", disk_template="ext", **EXT)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


@pytest.fixture
async def browser(door):
    """Return a browser in which somebody with the role write has signed in."""
    found = Browser(door)
    await found.sign_in()
    return found
