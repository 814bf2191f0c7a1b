# SPDX-License-Identifier: BSD-2-Clause
"""Disks on IDE or SCSI: on a pc alone, as many as there are places, none plugged."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, WrongState
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

DISK = {"size": 64, "dev_type": "sharedfile"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


async def modify(cluster: SimCluster, **fields: Any) -> Any:
    return await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", **fields)


async def test_a_q35_has_paravirtual_disks(cluster: SimCluster) -> None:
    with pytest.raises(BadInput, match="cannot have disk_type=ide: a q35 has") as told:
        await modify(cluster, hvparams={"disk_type": "ide"})
    assert "-H machine_version=pc" in told.value.hint
    assert cluster.config.instance("web1").hvparams == {}


@pytest.mark.parametrize(("kind", "most"), [("ide", 4), ("scsi-hd", 7)])
async def test_a_start_with_more_disks_than_places_is_refused(
    cluster: SimCluster, kind: str, most: int
) -> None:
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    await modify(cluster, hvparams={"machine_version": "pc", "disk_type": kind})
    had = len(cluster.config.instance("web1").disks)
    more = [["add", -1, DISK] for _ in range(most + 1 - had)]
    await modify(cluster, disks=more)
    with pytest.raises(BadInput, match=f"with disk_type={kind} has {most} places"):
        await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")


async def test_nothing_is_plugged_on_ide_while_the_guest_runs(
    cluster: SimCluster,
) -> None:
    await modify(cluster, hvparams={"machine_version": "pc", "disk_type": "ide"})
    await modify(cluster, disks=[["add", -1, DISK]])  # it runs on virtio yet
    await modify(cluster, disks=[["remove", -1, {}]])
    await cluster.run("OP_INSTANCE_REBOOT", instance_name="web1", reboot_type="full")
    before = cluster.config.instance("web1").disks
    with pytest.raises(WrongState, match="web1 has its disks on IDE: a disk that"):
        await modify(cluster, disks=[["add", -1, DISK]])
    assert cluster.config.instance("web1").disks == before
