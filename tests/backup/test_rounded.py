# SPDX-License-Identifier: BSD-2-Clause
"""Exports of disks whose storage made them larger than their records say."""

from pathlib import Path

import pytest

from moorage.testing.cluster import SimCluster

NEW = {"instance_name": "lv", "pnode": "node1", "disk_template": "plain"}


@pytest.mark.parametrize("way", [{"start": False}, {"shutdown": False}])
async def test_a_volume_that_was_rounded_up_comes_back(
    tmp_path: Path, way: dict[str, bool]
) -> None:
    cluster = await SimCluster.start(tmp_path)
    live = "shutdown" in way
    disks = [{"size": 66, "name": "odd"}]
    await cluster.run("OP_INSTANCE_CREATE", **NEW, disks=disks, start=live)
    ((key, volume),) = cluster.nodes.san.logical.items()
    cluster.nodes.san.logical[key] = volume | {"data": "to the very end"}
    more = {"shutdown": False} if live else {}
    await cluster.run("OP_BACKUP_EXPORT", instance_name="lv", **more)
    await cluster.run("OP_BACKUP_VERIFY", instance_name="lv")
    again = {"instance_name": "again", "mode": "import", "src_path": "lv"}
    await cluster.run("OP_INSTANCE_CREATE", **again, start=False)
    held = [one["data"] for one in cluster.nodes.san.logical.values()]
    assert held == ["to the very end"] * 2
    third = again | {"instance_name": "third", "disk_template": "sharedfile"}
    await cluster.run("OP_INSTANCE_CREATE", **third, start=False)
    (disk,) = cluster.config.disks_of(cluster.config.instance("third"))
    assert disk.size == 68
    assert cluster.nodes.san.files[disk.volume]["data"] == "to the very end"
    await cluster.stop()
