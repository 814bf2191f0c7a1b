# SPDX-License-Identifier: BSD-2-Clause
"""Planners, Ganeti's own and ours, read a simulated cluster through the door."""

import asyncio
import sys
from pathlib import Path

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

PLANNERS = ("hinfo", "hbal", "hspace", "hcheck", "hroller")
ganeti = pytest.mark.skipif(
    not Path("/usr/bin/hinfo").exists(), reason="ganeti-htools is not installed"
)


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


@ganeti
@pytest.mark.oracle
@pytest.mark.parametrize("planner", PLANNERS)
async def test_a_planner_of_ganetis_reads_the_cluster(door: RapiDoor, planner):
    status, told = await run(f"/usr/bin/{planner}", login(door, "root:secret"))
    assert not status, told
    assert told


async def test_ours_show_a_password_to_the_door_alone(door: RapiDoor):
    ours = str(Path(sys.executable).with_name("hinfo"))
    status, told = await run(ours, login(door, "root:secret"))
    assert not status, told
    assert "Loaded 4 nodes, 3 instances" in told
    status, told = await run(ours, login(door, "root:guess"))
    assert status
    assert "401" in told
    assert "guess" not in told


def login(door: RapiDoor, user: str) -> str:
    return f"https://{user}@127.0.0.1:{door.port}"


async def run(program: str, address: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        program,
        "-m",
        address,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    return process.returncode, told.decode()
