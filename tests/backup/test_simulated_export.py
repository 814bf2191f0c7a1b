# SPDX-License-Identifier: BSD-2-Clause
"""Exports on a simulated cluster: what is copied, when, and what is left behind."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour


@pytest.fixture
async def cluster(tmp_path: Path) -> Any:
    """Return the harbour, its disks with something on them."""
    found = await harbour(tmp_path)
    san = found.nodes.san
    for name in san.volumes:
        san.volumes[name] |= {"data": f"data of {name}"}
    for name in san.files:
        san.files[name] |= {"data": f"data of {name}"}
    yield found
    await found.stop()


def manifest(cluster: SimCluster, node: str, name: str) -> dict[str, Any]:
    text = cluster.nodes.san.files[f"{node}:/sim/export/{name}/manifest.json"]["data"]
    return dict(json.decode(text))


@pytest.mark.parametrize("asked", [{}, {"shutdown": False}, {"long_sleep": True}])
async def test_an_export_has_the_data_of_every_disk(
    cluster: SimCluster, asked: dict[str, Any]
) -> None:
    files = set(cluster.nodes.san.files)
    volumes = set(cluster.nodes.san.volumes)
    assert await cluster.run("OP_BACKUP_EXPORT", instance_name="web1", **asked) == [
        True,
        [True, True],
    ]
    told = manifest(cluster, "node1", "web1")
    assert [dump["size"] for dump in told["dumps"]] == [512, 256]
    san = cluster.nodes.san
    held = [
        san.files[f"node1:/sim/export/web1/{dump['file']}"]["data"]
        for dump in told["dumps"]
    ]
    root, data = cluster.config.disks_of(cluster.config.instance("web1"))
    assert held == [f"data of {root.volume}", f"data of {data.volume}"]
    assert set(san.volumes) == volumes
    new = set(san.files) - files
    assert all(name.startswith("node1:/sim/export/web1/") for name in new)
    assert san.guests["node1 " + cluster.config.instance("web1").uuid]


async def test_what_was_exported_comes_back_under_another_name(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web1", format="qcow2")
    old = cluster.config.instance("web1")
    held = [
        cluster.nodes.san.files.get(disk.volume, {}).get("data")
        or cluster.nodes.san.volumes[disk.volume]["data"]
        for disk in cluster.config.disks_of(old)
    ]
    made = {"instance_name": "web9", "mode": "import", "src_path": "web1"}
    made["pnode"] = "node1"
    assert await cluster.run("OP_INSTANCE_CREATE", **made, start=False) == ["node1"]
    new = cluster.config.instance("web9")
    disks = cluster.config.disks_of(new)
    assert [disk.dev_type for disk in disks] == ["sharedfile", "ext"]
    assert [disk.size for disk in disks] == [512, 256]
    assert new.uuid != old.uuid
    san = cluster.nodes.san
    assert san.files[disks[0].volume]["data"] == held[0]
    assert san.volumes[disks[1].volume]["data"] == held[1]


async def test_a_dump_that_was_tampered_with_is_not_imported(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web1")
    san = cluster.nodes.san
    volumes, files = set(san.volumes), set(san.files)
    san.files["node1:/sim/export/web1/disk1.qcow2"] |= {"data": "something else"}
    made = {"instance_name": "web9", "mode": "import", "src_path": "web1"}
    error = await cluster.refused("OP_INSTANCE_CREATE", **made)
    assert "disk1.qcow2" in error.message
    assert "checksum" in error.message
    assert (set(san.volumes), set(san.files)) == (volumes, files)
    told = await cluster.run("OP_BACKUP_VERIFY", instance_name="web1")
    assert list(told) == ["node1"]
    assert len(told["node1"]) == 1
    await cluster.run("OP_BACKUP_REMOVE", instance_name="web1")
    assert not any("/sim/export/web1" in name for name in san.files)
