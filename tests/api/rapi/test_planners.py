# SPDX-License-Identifier: BSD-2-Clause
"""Planners, Ganeti's own and ours, read a simulated cluster through both doors."""

import asyncio
import sys
from pathlib import Path

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster
from peers import GANETI, PLANNERS, unpacked
from rapi_door import RapiDoor, rapi_door

NAMES = ("hinfo", "hbal", "hspace", "hcheck", "hroller")
GUESTS = ("web1", "web2", "web3", "web4")


@pytest.fixture
async def door(tmp_path):
    cluster = await SimCluster.start(tmp_path / "sim", ClusterBuilder(4))
    disks = [{"size": 128, "provider": "san"}]
    for name in GUESTS:
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=name,
            pnode="node1",
            disk_template="ext",
            disks=disks,
            beparams={"memory": 4096},
        )
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


@pytest.mark.oracle
@pytest.mark.parametrize("way", ["-m", "-L"])
async def test_ganetis_planners_read_the_cluster(door: RapiDoor, way: str):
    for name in NAMES:
        status, told = await run(ganetis(name), of(door, way))
        assert not status, told
        assert told
        assert "missing memory" not in told


@pytest.mark.oracle
async def test_ganetis_hbal_moves_instances(door: RapiDoor):
    """Jobs over LUXI, which it follows; afterwards it finds nothing to do."""
    before = homes(door)
    status, told = await run(ganetis("hbal"), of(door, "-L"), "-X")
    assert not status, told
    assert "Cluster score improved" in told
    assert homes(door) != before
    status, told = await run(ganetis("hbal"), of(door, "-L"), "-X")
    assert not status, told
    assert "Nothing to do" in told


async def test_ours_show_a_password_to_the_door_alone(door: RapiDoor):
    ours = str(Path(sys.executable).with_name("hinfo"))
    status, told = await run(ours, of(door, "-m"))
    assert not status, told
    assert "Loaded 4 nodes, 4 instances" in told
    status, told = await run(ours, of(door, "-m", "root:guess"))
    assert status
    assert "401" in told
    assert "guess" not in told


def homes(door: RapiDoor) -> dict[str, str]:
    config = door.cluster.config
    return {name: config.instance(name).primary_node for name in GUESTS}


def of(door: RapiDoor, way: str, login: str = "root:secret") -> str:
    """Return the words by which a planner finds the cluster."""
    if way == "-L":
        return f"-L{door.directory}/luxi.sock"
    return f"-mhttps://{login}@127.0.0.1:{door.port}"


def ganetis(name: str) -> str:
    place = unpacked(GANETI)
    if place is None:
        pytest.skip("Debian's packages of Ganeti cannot be had")
    return f"{place}/{PLANNERS}/{name}"


async def run(program: str, *words: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(program, *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    return process.returncode, told.decode()
