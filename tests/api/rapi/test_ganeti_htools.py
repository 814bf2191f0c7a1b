# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's own planners read a simulated cluster through the door."""

import asyncio
from pathlib import Path

import pytest
from rapi_door import RapiDoor, rapi_door

from moorage.testing.cluster import ClusterBuilder, SimCluster

PLANNERS = ("hinfo", "hbal", "hspace", "hcheck", "hroller")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        not Path("/usr/bin/hinfo").exists(), reason="ganeti-htools is not installed"
    ),
]


@pytest.fixture
async def door(tmp_path):
    cluster = await SimCluster.start(tmp_path / "sim", ClusterBuilder(4))
    disks = [{"size": 128, "provider": "san"}]
    for name in ("web1", "web2", "web3"):
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=name,
            pnode="node1",
            disk_template="ext",
            disks=disks,
        )
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


@pytest.mark.parametrize("planner", PLANNERS)
async def test_a_planner_of_ganetis_reads_the_cluster(door: RapiDoor, planner):
    process = await asyncio.create_subprocess_exec(
        f"/usr/bin/{planner}",
        "-m",
        f"https://root:secret@127.0.0.1:{door.port}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    assert not process.returncode, told.decode()
    assert told
