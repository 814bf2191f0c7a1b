# SPDX-License-Identifier: BSD-2-Clause
"""Which scripts an export runs, what they are told, and what refuses one."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from moorage.errors import CommandFailed
from moorage.model import Instance
from moorage.model.export import name_of_disk
from moorage.storage import Command
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour


@pytest.fixture
async def cluster(tmp_path: Path) -> Any:
    found = await harbour(tmp_path)
    yield found
    await found.stop()


def scripts(cluster: SimCluster, node: str) -> list[Command]:
    ran = cluster.nodes.nodes[node].machine.ran
    return [one for one in ran if one.argv[0].startswith("/sim/extstorage/")]


def verb(command: Command) -> str:
    return PurePosixPath(command.argv[0]).name


@pytest.mark.requirement("S0-54")
async def test_snapshots_are_taken_then_read_as_disks_and_removed(
    cluster: SimCluster,
) -> None:
    """The whole row: `export -n N` takes the snapshot, attaches and removes it."""
    before = {name: len(scripts(cluster, name)) for name in ("node1", "node2")}
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web1", target_node="node2")
    here, there = (scripts(cluster, name)[before[name] :] for name in before)
    _, data = cluster.config.disks_of(cluster.config.instance("web1"))
    (taken,) = [one for one in here if verb(one) == "snapshot"]
    assert taken.env["VOL_NAME"] == data.volume
    snap = taken.env["VOL_SNAPSHOT_NAME"]
    assert [verb(one) for one in there] == ["attach", "detach"]
    assert {one.env["VOL_NAME"] for one in there} == {snap}
    assert [verb(one) for one in here if one.env["VOL_NAME"] == snap] == ["remove"]
    assert snap not in cluster.nodes.san.volumes


@pytest.mark.requirement("S0-47", "S0-48")
async def test_only_snapshot_is_told_name_and_size_of_one(cluster: SimCluster) -> None:
    """Both rows: the environment of every script, over an export and all before it."""
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web1")
    told = {
        verb(one): {name for name in one.env if name.startswith("VOL_SNAPSHOT")}
        for one in scripts(cluster, "node1")
    }
    assert told.pop("snapshot") == {"VOL_SNAPSHOT_NAME", "VOL_SNAPSHOT_SIZE"}
    assert {"create", "attach", "open", "setinfo", "remove"} <= told.keys()
    assert set().union(*told.values()) == set()
    (taken,) = [one for one in scripts(cluster, "node1") if verb(one) == "snapshot"]
    assert taken.env["VOL_SNAPSHOT_SIZE"] == "256"


@pytest.mark.requirement("S0-32")
async def test_without_a_snapshot_script_an_export_says_what_would_do(
    cluster: SimCluster,
) -> None:
    """The whole row: the export refuses, and everything else works without it."""
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web3")
    error = await cluster.refused("OP_BACKUP_EXPORT", instance_name="web3")
    assert "plainsan" in error.message
    assert "--noshutdown" in error.hint
    assert "--long-sleep" in error.hint
    assert cluster.nodes.san.guests  # nobody was shut down for it
    for way in ({"shutdown": False}, {"long_sleep": True}):
        await cluster.run("OP_BACKUP_EXPORT", instance_name="web3", **way)
    await cluster.run("OP_DISK_GROW", disk="root3", amount=64)
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web3")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web3")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"shutdown": False, "remove_instance": True}, "is not removed"),
        ({"shutdown": False, "long_sleep": True}, "exclude each other"),
        ({"format": "tar"}, "qcow2 or ganeti"),
        ({"format": "ganeti", "compressed": True}, "not compressed"),
        ({"rate": -1}, "'rate' is at least 0"),
    ],
)
async def test_what_cannot_be_is_refused(
    cluster: SimCluster, asked: dict[str, Any], said: str
) -> None:
    files = dict(cluster.nodes.san.files)
    error = await cluster.refused("OP_BACKUP_EXPORT", instance_name="web1", **asked)
    assert said in error.message
    assert dict(cluster.nodes.san.files) == files


async def test_a_guest_is_down_only_while_snapshots_are_taken(
    cluster: SimCluster,
) -> None:
    seen = list[tuple[str, bool]]()
    uuid = cluster.config.instance("web1").uuid

    async def look(name: str) -> None:
        seen.append((name, f"node1 {uuid}" in cluster.nodes.san.guests))

    cluster.extra_point = look
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web1")
    down = [name for name, runs in seen if not runs]
    assert all("snapshot" in name or "web1" in name for name in down)
    taken = [runs for name, runs in seen if name.startswith("during take snapshot")]
    assert taken == [False, False]
    assert not any("dump disk" in name for name in down)


async def test_an_instance_is_removed_when_its_export_is_whole(
    cluster: SimCluster,
) -> None:
    asked = {"remove_instance": True, "format": "ganeti"}
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web1", **asked)
    assert not cluster.config.knows(Instance, "web1")
    assert not any("disk1" in name for name in cluster.nodes.san.volumes)
    made = {"instance_name": "web1", "mode": "import", "start": True}
    await cluster.run("OP_INSTANCE_CREATE", **made)
    disks = cluster.config.disks_of(cluster.config.instance("web1"))
    assert [disk.size for disk in disks] == [512, 256]


async def test_an_instance_that_does_not_stop_stays_beside_its_export(
    cluster: SimCluster,
) -> None:
    """The export is whole: what comes behind it is neither done nor a way back."""
    reached = list[str]()
    hypervisor = cluster.nodes.nodes["node1"].hypervisor
    stop = hypervisor.stop

    async def refuse(guest: str, patience: float) -> None:
        if any(name.startswith("after publish") for name in reached):
            raise CommandFailed("it was told to")
        await stop(guest, patience)

    async def note(name: str) -> None:
        reached.append(name)

    hypervisor.stop = refuse  # type: ignore[method-assign]
    cluster.extra_point = note
    asked = {"remove_instance": True, "instance_name": "web1"}
    job = await cluster.finished(await cluster.submit("OP_BACKUP_EXPORT", **asked))
    assert (job.status, job.ops[0].undoing) == ("error", False), reached
    assert job.ops[0].error
    assert "it was told to" in job.ops[0].error["message"]
    assert cluster.config.instance("web1").admin_state == "up"
    assert not any("undo" in name for name in reached)
    made = {"instance_name": "again", "mode": "import", "src_path": "web1"}
    await cluster.run("OP_INSTANCE_CREATE", start=False, **made)


@pytest.mark.requirement("S0-81")
async def test_a_pool_does_not_go_while_an_import_comes_into_it(
    cluster: SimCluster,
) -> None:
    made = {"instance_name": "new", "src_path": "web3", "disks": [{"pool": "nas"}]}
    (told,) = await cluster.at_once(
        {"OP_ID": "OP_INSTANCE_CREATE", "mode": "import", "start": False, **made},
        {"OP_ID": "OP_STORAGE_POOL_REMOVE", "pool_name": "nas"},
    )
    assert str(told).startswith("storage pool 'nas' cannot be removed: a disk uses it")
    (disk,) = cluster.config.disks_of(cluster.config.instance("new"))
    assert disk.pool == cluster.config.pool("nas").uuid


@pytest.mark.requirement("S0-82")
async def test_no_import_comes_where_its_pool_is_not_connected(
    cluster: SimCluster,
) -> None:
    before = dict(cluster.nodes.san.volumes)
    made = {"instance_name": "new", "src_path": "web3", "disks": [{"pool": "idle"}]}
    error = await cluster.refused("OP_INSTANCE_CREATE", mode="import", **made)
    assert "'idle' is not connected to node group default" in error.message
    assert dict(cluster.nodes.san.volumes) == before


@pytest.mark.requirement("S0-72")
async def test_a_disk_with_a_uri_alone_is_exported_and_imported(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_ATTACH", disk="user", instance_name="web2")
    for form in ("qcow2", "ganeti"):
        asked = {"instance_name": "web2", "format": form}
        await cluster.run("OP_BACKUP_EXPORT", **asked)
        made = {"instance_name": f"new-{form}", "src_path": "web2", "mode": "import"}
        await cluster.run("OP_INSTANCE_CREATE", **made, start=True)
        (disk,) = cluster.config.disks_of(cluster.config.instance(f"new-{form}"))
        assert disk.params["provider"] == "usersan"
        name = cluster.config.disk("user").volume
        volumes = cluster.nodes.san.volumes
        assert volumes[disk.volume]["data"] == volumes[name]["data"]


async def test_a_mirrored_instance_is_imported_on_two_nodes_that_are_named(
    cluster: SimCluster,
) -> None:
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="pair",
        disk_template="drbd",
        disks=[{"size": 64}],
        pnode="node1",
        snode="node2",
        start=False,
    )
    await cluster.run("OP_BACKUP_EXPORT", instance_name="pair")
    asked = {"mode": "import", "src_path": "pair", "instance_name": "again"}
    error = await cluster.refused("OP_INSTANCE_CREATE", **asked, pnode="node1")
    assert error.hint == "-n node1:OTHER, or leave -n out: the planner chooses"
    await cluster.run("OP_INSTANCE_CREATE", **asked, pnode="node1", snode="node2")
    asked["instance_name"] = "third"
    chosen = await cluster.run("OP_INSTANCE_CREATE", **asked)
    assert len(set(chosen)) == 2


@pytest.mark.requirement("S0-81")
async def test_a_pool_does_not_go_while_an_imported_disk_comes_into_it(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_EXPORT", disk="spare")
    spare = cluster.config.disk("spare")
    asked = {"name": "new", "src_path": name_of_disk(spare)}
    made = asked | {"params": {"pool": "nas"}}
    (told,) = await cluster.at_once(
        {"OP_ID": "OP_DISK_IMPORT", **made},
        {"OP_ID": "OP_STORAGE_POOL_REMOVE", "pool_name": "nas"},
    )
    assert str(told).startswith("storage pool 'nas' cannot be removed: a disk uses it")
    assert cluster.config.disk("new").pool == cluster.config.pool("nas").uuid
