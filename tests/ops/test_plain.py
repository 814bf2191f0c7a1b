# SPDX-License-Identifier: BSD-2-Clause
"""Logical volumes through all floors, on simulated nodes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import (
    BadInput,
    Exists,
    NoCapacity,
    WrongState,
)
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder(2)
    given = {"volume_group_name": GROUP}
    builder.objects["cluster"] = replace(builder.objects["cluster"], **given)
    found = await SimCluster.start(tmp_path / "nodes", builder)
    yield found
    await found.stop()


async def add(cluster: SimCluster, name: str, **disk: Any) -> Any:
    new = {"size": 1000, "name": f"d-{name}"} | disk
    wanted = {key: value for key, value in new.items() if value is not None}
    fields = {"instance_name": name, "disk_template": "plain", "disks": [wanted]}
    await cluster.run("OP_INSTANCE_CREATE", pnode="node1", **fields)
    (made,) = cluster.config.disks_of(cluster.config.instance(name))
    return made


def volumes(cluster: SimCluster) -> dict[str, int]:
    return {name: one["size"] for name, one in cluster.nodes.san.logical.items()}


async def test_its_volume_has_ganetis_name_grows_and_goes(cluster: SimCluster) -> None:
    disk = await add(cluster, "web")
    group, name = disk.logical_id
    assert (group, name.endswith(".disk0"), disk.nodes) == (GROUP, True, ("node1",))
    assert volumes(cluster) == {f"node1 {GROUP}/{name}": 1000}
    note = cluster.nodes.san.logical[f"node1 {GROUP}/{name}"]["tags"]
    assert note == "originstname+web"
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run("OP_DISK_GROW", disk=disk.uuid, amount=24)
    assert volumes(cluster) == {f"node1 {GROUP}/{name}": 1024}
    assert (await cluster.run("OP_CLUSTER_VERIFY"))["errors"] == []
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web", shutdown_timeout=0)
    assert volumes(cluster) == {}


@pytest.mark.requirement("S0-09")
@pytest.mark.parametrize(
    ("op_id", "word"),
    [("OP_INSTANCE_FAILOVER", "failover"), ("OP_INSTANCE_MIGRATE", "migrations")],
)
async def test_it_stays_where_its_volume_is(
    cluster: SimCluster, op_id: str, word: str
) -> None:
    await add(cluster, "web")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    error = await cluster.refused(op_id, instance_name="web", target_node="node2")
    told = f"Instance's disk layout 'plain' does not allow {word}"
    assert error.message.startswith(told)


async def test_its_group_is_the_disks_own_or_the_clusters(cluster: SimCluster) -> None:
    cluster.nodes.san.groups["node1 fast"] = {"devices": {"/dev/nvme0": 4096}}
    assert (await add(cluster, "web", vg="fast")).logical_id[0] == "fast"
    with pytest.raises(BadInput, match="'-x' is not the name of a volume group"):
        await add(cluster, "odd", vg="-x")
    with pytest.raises(WrongState, match="node1 has no volume group slow"):
        await add(cluster, "lost", vg="slow")
    assert len(volumes(cluster)) == 1


async def test_what_a_group_has_no_room_for_is_refused(cluster: SimCluster) -> None:
    await add(cluster, "web", size=1024 * 1024 - 8)
    with pytest.raises(NoCapacity, match=r"lvm-vg/xenvg.*free 8 MiB"):
        await add(cluster, "two", size=1000)


async def test_a_volume_that_is_there_is_adopted_with_its_name(
    cluster: SimCluster,
) -> None:
    old = {"size": 512, "data": "old", "tags": "", "origin": "", "devices": []}
    cluster.nodes.san.logical[f"node1 {GROUP}/legacy"] = old
    disk = await add(cluster, "web", size=None, adopt="legacy")
    assert (disk.logical_id, disk.size) == ((GROUP, "legacy"), 512)
    with pytest.raises(Exists, match="volume legacy is disk d-web already"):
        await add(cluster, "two", size=None, adopt="legacy")
    with pytest.raises(WrongState, match="no block device /dev/xenvg/none"):
        await add(cluster, "two", size=None, adopt="none")
    with pytest.raises(BadInput, match="is not the name of a logical volume"):
        await add(cluster, "two", size=None, adopt="../../sda")
    assert cluster.nodes.san.logical[f"node1 {GROUP}/legacy"]["data"] == "old"


async def test_with_exclusive_storage_a_disk_has_its_spindles(
    cluster: SimCluster,
) -> None:
    with pytest.raises(BadInput, match="spindles with exclusive storage only"):
        await add(cluster, "web", spindles=1)
    given = {"ndparams": {"exclusive_storage": True}}
    await cluster.run("OP_GROUP_SET_PARAMS", group_name="default", **given)
    with pytest.raises(BadInput, match="the disk needs a number of spindles"):
        await add(cluster, "web")
    disk = await add(cluster, "web", spindles=1)
    assert disk.spindles == 1
    two = await add(cluster, "two", spindles=1)
    used = [one["devices"] for one in cluster.nodes.san.logical.values()]
    assert used == [["/dev/sda"], ["/dev/sdb"]]
    with pytest.raises(NoCapacity, match=r"spindles \(asked 1, free 0\)"):
        await add(cluster, "three", spindles=1)
    assert (await cluster.run("OP_CLUSTER_VERIFY"))["errors"] == []
    assert two.uuid in cluster.config.objects


@pytest.mark.parametrize("op_id", ["OP_DISK_ADD", "OP_INSTANCE_CREATE"])
async def test_spindles_are_claimed_by_the_job_that_chose_them(
    cluster: SimCluster, op_id: str
) -> None:
    """Of jobs that are under way together, none fails for another one's."""
    given = {"ndparams": {"exclusive_storage": True}}
    await cluster.run("OP_GROUP_SET_PARAMS", group_name="default", **given)
    disk = {"size": 64, "spindles": 1}
    wanted = []
    for name in ("one", "two", "three"):
        fields: dict[str, Any] = {"node": "node1", "name": name, **disk}
        if op_id == "OP_INSTANCE_CREATE":
            fields = {"instance_name": name, "pnode": "node1", "disks": [disk]}
        wanted.append({"OP_ID": op_id, "disk_template": "plain", **fields})
    (refused,) = await cluster.at_once(*wanted)
    assert isinstance(refused, NoCapacity), refused
    assert len(volumes(cluster)) == 2


async def test_a_snapshot_needs_the_volume_that_it_was_taken_of(
    cluster: SimCluster,
) -> None:
    disk = await add(cluster, "web")
    await cluster.run("OP_DISK_SNAPSHOT", disk="d-web", new_name="copy")
    await cluster.run("OP_DISK_DETACH", disk="d-web")
    with pytest.raises(WrongState, match="d-web has snapshots"):
        await cluster.run("OP_DISK_REMOVE", disk="d-web")
    assert cluster.config.disk(disk.uuid).quarantine is None


async def test_a_snapshot_and_its_origin_are_bound_to_each_other(
    cluster: SimCluster,
) -> None:
    await add(cluster, "web")
    await cluster.run("OP_DISK_SNAPSHOT", disk="d-web", new_name="copy")
    grow = {"op_id": "OP_DISK_GROW", "amount": 64}
    refusal = await cluster.refused(disk="d-web", **grow)
    assert (
        refusal.message == "disk d-web has snapshots, and cannot grow with them: copy"
    )
    refusal = await cluster.refused(disk="copy", **grow)
    bound = "disk copy is a snapshot that is bound to its origin, volume "
    assert refusal.message.startswith(bound)
    assert refusal.message.endswith(": it cannot grow")
    refusal = await cluster.refused("OP_DISK_SNAPSHOT", disk="copy")
    assert refusal.message.startswith(bound)
    assert refusal.message.endswith(": none is taken of it")
    await cluster.run("OP_DISK_CLONE", disk="copy", new_name="alone")
    await cluster.run(disk="alone", **grow)
    await cluster.run("OP_DISK_REMOVE", disk="copy")
    await cluster.run(disk="d-web", **grow)


async def test_an_export_over_a_snapshot_of_a_snapshot_is_refused(
    cluster: SimCluster,
) -> None:
    await add(cluster, "web")
    await cluster.run("OP_DISK_SNAPSHOT", disk="d-web", new_name="copy")
    await cluster.run("OP_DISK_ATTACH", instance_name="web", disk="copy")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    to = {"instance_name": "web", "target_node": "node1"}
    refusal = await cluster.refused("OP_BACKUP_EXPORT", **to)
    assert "is bound to its origin" in refusal.message
    assert "--long-sleep" in refusal.hint


async def test_the_clusters_group_is_one_that_every_node_has(
    cluster: SimCluster,
) -> None:
    with pytest.raises(WrongState, match="node node1 has no volume group fast"):
        await cluster.run("OP_CLUSTER_SET_PARAMS", volume_group_name="fast")
    await add(cluster, "web")
    with pytest.raises(WrongState, match="Cannot disable lvm storage"):
        await cluster.run("OP_CLUSTER_SET_PARAMS", volume_group_name="")
    for node in ("node1", "node2"):
        cluster.nodes.san.groups[f"{node} fast"] = {"devices": {"/dev/nvme0": 64}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", volume_group_name="fast")
    assert cluster.config.cluster.volume_group_name == "fast"


async def test_a_volume_group_that_the_node_lacks_is_refused(
    cluster: SimCluster,
) -> None:
    before = dict(cluster.nodes.san.logical)
    told = await cluster.refused(
        "OP_DISK_ADD",
        name="lost",
        disk_template="plain",
        size=64,
        node="node1",
        params={"vg": "nosuch"},
    )
    assert told.message == "node node1 has no volume group nosuch"
    assert told.hint == "on node1: vgcreate nosuch /dev/…"
    assert dict(cluster.nodes.san.logical) == before


@pytest.mark.parametrize("template", ["plain", "sharedfile"])
async def test_a_node_and_a_group_that_contradict_each_other_are_refused(
    cluster: SimCluster, template: str
) -> None:
    await cluster.run("OP_GROUP_ADD", group_name="rack2")
    told = await cluster.refused(
        "OP_DISK_ADD", disk_template=template, size=64, node="node1", group="rack2"
    )
    assert told.message == "node node1 is in node group default, not in rack2"
    told = await cluster.refused(
        "OP_DISK_ADOPT", disk_template=template, volume="x", node="node1", group="rack2"
    )
    assert told.hint == "leave -g out: the node says it"
