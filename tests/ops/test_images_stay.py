# SPDX-License-Identifier: BSD-2-Clause
"""A disk is what it was made as: its file and its template, whoever has it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.disk_templates import FACTS, Mirror, driven
from moorage.model import Instance
from moorage.testing.cluster import SimCluster
from moorage.testing.rbd import POOL
from moorage.testing.scenarios import LUN, cellar, harbour, pier
from moorage.testing.stored import GLUSTER_DIR


@pytest.mark.requirement("S3-48")
async def test_an_image_file_keeps_its_path_from_owner_to_owner(tmp_path: Path) -> None:
    cluster = await harbour(tmp_path / "nodes")
    files, made = cluster.nodes.san.files, cluster.config.disk("root1")
    (path,) = [name for name in files if name.endswith(made.volume)]
    files[path] |= {"data": "checksum"}
    before = sorted(files)
    await cluster.run("OP_DISK_DETACH", disk="root1")
    assert cluster.config.disk("root1").logical_id == made.logical_id
    await cluster.run("OP_DISK_ATTACH", disk="root1", instance_name="web2")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web2", target_node="node3")
    await cluster.run("OP_DISK_RENAME", disk="root1", new_name="other")
    assert cluster.config.disk("other").logical_id == made.logical_id
    assert sorted(files) == before
    assert files[path]["data"] == "checksum"
    await cluster.stop()


@pytest.mark.requirement("S3-23", "S3-49")
@pytest.mark.parametrize("place", [harbour, cellar, pier])
async def test_detached_disks_of_every_kind_are_accounted_for(
    tmp_path: Path, place: Callable[[Path], Awaitable[SimCluster]]
) -> None:
    """Verify is content, and every volume is known: no orphan, none missing."""
    cluster = await place(tmp_path / "nodes")
    for instance in cluster.config.all(Instance):
        for disk in cluster.config.disks_of(instance):
            await cluster.run("OP_DISK_DETACH", disk=disk.uuid)
    told = await cluster.run("OP_CLUSTER_VERIFY")
    assert (told["errors"], told["warnings"]) == ([], [])
    assert told["checked"]["disks"] == len(cluster.config.detached()) > 2
    told = await cluster.run("OP_STORAGE_RECONCILE")
    assert (told["plan"], told["missing"]) == ([], [])
    assert {one["state"] for one in told["volumes"]} <= {"referenced", "snapshot"}
    await cluster.stop()


@pytest.mark.requirement("S3-49")
async def test_the_room_of_a_detached_logical_volume_is_taken(tmp_path: Path) -> None:
    cluster = await cellar(tmp_path / "nodes")
    await cluster.run("OP_DISK_GROW", disk="lv", amount=1000 * 1000)
    await cluster.run("OP_DISK_DETACH", disk="lv")
    new = {"disk_template": "plain", "node": "node1", "size": 100 * 1000}
    error = await cluster.refused("OP_DISK_ADD", name="more", **new)
    assert "lvm-vg/xenvg" in error.message
    await cluster.run("OP_DISK_REMOVE", disk="lv")
    await cluster.run("OP_DISK_ADD", name="more", **new)
    await cluster.run("OP_DISK_ADD", **new | {"name": "there", "node": "node2"})
    error = await cluster.refused("OP_NODE_REMOVE", node_name="node2")
    assert "there" in error.message
    await cluster.stop()


@pytest.mark.requirement("S3-05")
async def test_what_is_asked_for_as_template_is_recorded_as_the_disks_type(
    tmp_path: Path,
) -> None:
    """One list of names serves the template of a request and the type of a disk."""
    cluster = await harbour(tmp_path / "nodes")
    needs = {
        "ext": {"provider": "san", "size": 64},
        "blockdev": {"adopt": LUN},
    }
    given = {"gluster_storage_dir": GLUSTER_DIR, "diskparams": {"rbd": {"pool": POOL}}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", **given)
    for name in driven():
        if name == "diskless" or FACTS[name].mirror is Mirror.INTERNAL:
            continue  # without a disk, or with a second node: tested on their own
        new = {"name": f"by-{name}", "disk_template": name, "node": "node1"}
        await cluster.run("OP_DISK_ADD", **new, **needs.get(name, {"size": 64}))
        assert cluster.config.disk(f"by-{name}").dev_type == name
        await cluster.run("OP_DISK_REMOVE", disk=f"by-{name}")
        given = {"dev_type": name} | needs.get(name, {"size": 64})
        change = {"instance_name": "web1", "disks": [["add", "-1", given]]}
        await cluster.run("OP_INSTANCE_SET_PARAMS", **change)
        web1 = cluster.config.instance("web1")
        assert cluster.config.disks_of(web1)[-1].dev_type == name
        change = {"instance_name": "web1", "disks": [["remove", "-1", {}]]}
        await cluster.run("OP_INSTANCE_SET_PARAMS", **change)
    await cluster.stop()
