# SPDX-License-Identifier: BSD-2-Clause
"""Instances: made, moved, stopped and removed, on storage that several nodes share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, NotSupported, Refused, WrongState
from moorage.model import Change, Disk, Instance, successor
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import LUN, harbour
from moorage.testing.state_snapshot import picture

CREATE, MIGRATE = "OP_INSTANCE_CREATE", "OP_INSTANCE_MIGRATE"
FAILOVER = "OP_INSTANCE_FAILOVER"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    assert cluster.nodes.san.broken == []
    await cluster.stop()


def runs_on(cluster: SimCluster, name: str = "web1") -> list[str]:
    uuid = cluster.config.instance(name).uuid
    return [key.split()[0] for key in cluster.nodes.san.guests if key.endswith(uuid)]


async def info(cluster: SimCluster, name: str) -> dict[str, Any]:
    told = await cluster.run("OP_INSTANCE_QUERY_DATA", instances=[name])
    return next(iter(told.values()))


async def off(cluster: SimCluster, name: str) -> None:
    node = successor(cluster.config.node(name), 1.0, offline=True)
    await cluster.config_store.commit(Change((node,)))


# -- made --------------------------------------------------------------------------


@pytest.mark.requirement("S0-01", "S0-05", "S0-17")
async def test_a_shared_file_has_one_path_on_every_node(cluster: SimCluster) -> None:
    disk = cluster.config.disk("root1")
    driver, path = disk.logical_id
    assert driver == "loop"
    folder, name = path.rsplit("/", 1)
    assert folder == "/shared/web1"
    assert name.endswith(".sharedfile.disk0")
    seen = []
    for target in ("node2", "node3", "node1"):
        await cluster.run(MIGRATE, instance_name="web1", target_node=target)
        seen.append((await info(cluster, "web1"))["disks"][0]["held"]["path"])
    assert seen == [path] * 3


@pytest.mark.requirement("S0-03", "S0-04", "S0-07", "S3-12")
async def test_shared_storage_needs_no_second_node(cluster: SimCluster) -> None:
    told = await info(cluster, "web1")
    assert told["snodes"] == []
    nodes = cluster.config.nodes_of(cluster.config.instance("web1"))
    assert [node.name for node in nodes] == ["node1"]
    assert all(disk.nodes == () for disk in cluster.config.all(Disk))


@pytest.mark.requirement("S0-02")
async def test_an_instance_on_an_adopted_device(cluster: SimCluster) -> None:
    disks = [{"adopt": LUN, "dev_type": "blockdev"}]
    await cluster.run(CREATE, instance_name="lun", pnode="node1", disks=disks)
    told = await info(cluster, "lun")
    assert (told["disk_template"], told["disks"][0]["size"]) == ("blockdev", 2048)
    await cluster.run(MIGRATE, instance_name="lun", target_node="node3")
    assert runs_on(cluster, "lun") == ["node3"]


@pytest.mark.requirement("S0-10")
async def test_nothing_waits_for_a_copy(cluster: SimCluster) -> None:
    disks = [{"size": 64, "provider": "san"}]
    new = {"instance_name": "w", "pnode": "node1", "disk_template": "ext"}
    tasks = await cluster.run(CREATE, **new, disks=disks, dry_run=True)
    assert not any("sync" in task["what"] for task in tasks)
    job = await cluster.finished(await cluster.submit(CREATE, **new, disks=disks))
    assert job.ops[0].log == []


# -- what cannot be made -----------------------------------------------------------

NEW: dict[str, Any] = {"instance_name": "w", "pnode": "node1"}
DISK = {"size": 64, "dev_type": "ext", "provider": "san"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"disks": [DISK], "instance_name": "web1"}, "instance web1 exists already"),
        ({"disks": [DISK], "instance_name": "W_"}, "is not an instance name"),
        ({"disks": [DISK], "pnode": "nodeX"}, "node 'nodeX' is not known"),
        ({"disks": [DISK], "os_type": "beos"}, "node node1 has no OS 'beos'"),
        ({"disks": [DISK], "hypervisor": "xen"}, "hypervisor 'xen' is not enabled"),
        ({"disks": [{"size": 64}]}, "the disk names no template"),
        ({"disks": [DISK | {"size": 0}]}, "a disk has between 1 and"),
        ({"disks": [DISK | {"size": "1G"}]}, "a disk's size is a whole number of MiB"),
        ({"disks": [DISK | {"mode": "wr"}]}, "a disk's mode is rw or ro, not 'wr'"),
        ({"disks": [DISK] * 17}, "an instance has at most 16 disks, not 17"),
        ({"disks": []}, "no disk was described"),
        (
            {"disks": [DISK], "disk_template": "diskless"},
            "a diskless instance has no disks",
        ),
        ({"disks": [DISK], "beparams": {"ram": 1}}, "no back-end parameter 'ram'"),
        (
            {"disks": [DISK | {"name": "x"}, DISK | {"name": "x"}]},
            "two disks would be named 'x'",
        ),
        (
            {"disks": [DISK | {"dev_type": "punchcards"}]},
            "no disk template is called 'punchcards'",
        ),
    ],
)
async def test_what_cannot_be_made_is_refused(
    cluster: SimCluster, fields: dict[str, Any], sentence: str
) -> None:
    before, config = await picture(cluster), cluster.config
    error = await cluster.refused(CREATE, **(NEW | fields))
    assert sentence in str(error)
    assert isinstance(error, Refused)
    assert cluster.config is config
    assert (await picture(cluster)).differences(before) == []


# -- moved -------------------------------------------------------------------------


@pytest.mark.requirement("S0-08", "S0-11")
async def test_an_instance_goes_to_any_node(cluster: SimCluster) -> None:
    for verb, target in (
        (FAILOVER, "node3"),
        (FAILOVER, "node2"),
        (MIGRATE, "node1"),
        (MIGRATE, "node3"),
    ):
        await cluster.run(verb, instance_name="web1", target_node=target)
        assert runs_on(cluster) == [target]
        assert {key.split()[0] for key in cluster.nodes.san.attached} == {target}


@pytest.mark.requirement("S0-09")
@pytest.mark.parametrize(
    ("verb", "word"), [(MIGRATE, "migrations"), (FAILOVER, "failover")]
)
async def test_a_disk_that_stays_on_its_node_keeps_the_instance_there(
    cluster: SimCluster, verb: str, word: str
) -> None:
    disks = [{"size": 64, "dev_type": "file"}]
    await cluster.run(CREATE, instance_name="local", pnode="node1", disks=disks)
    config = cluster.config
    error = await cluster.refused(verb, instance_name="local", target_node="node2")
    assert isinstance(error, NotSupported)
    assert str(error).startswith(f"Instance's disk layout 'file' does not allow {word}")
    assert cluster.config is config


@pytest.mark.requirement("S0-13")
@pytest.mark.parametrize("verb", [MIGRATE, FAILOVER])
async def test_a_target_and_an_allocator_exclude_each_other(
    cluster: SimCluster, verb: str
) -> None:
    config = cluster.config
    both = {"target_node": "node2", "iallocator": "hail"}
    error = await cluster.refused(verb, instance_name="web1", **both)
    assert isinstance(error, BadInput)
    assert str(error) == "Do not specify both, iallocator and target node"
    error = await cluster.refused(verb, instance_name="web1", target_node="node1")
    assert isinstance(error, WrongState)
    assert cluster.config is config


async def test_a_node_that_may_still_write_is_not_failed_over(
    cluster: SimCluster,
) -> None:
    cluster.nodes.nodes["node1"].lose_power()
    where = {"instance_name": "web1", "target_node": "node2"}
    error = await cluster.refused(FAILOVER, **where)
    assert "gnt-node modify --offline=yes node1" in error.hint
    assert runs_on(cluster) == []
    await off(cluster, "node1")
    await cluster.run(FAILOVER, **where)
    assert runs_on(cluster) == ["node2"]


async def test_a_source_that_dies_behind_a_complete_transfer(
    cluster: SimCluster,
) -> None:
    """The target says that the guest arrived: nobody starts it a second time."""
    number = await cluster.submit(MIGRATE, instance_name="web1", target_node="node2")

    async def cut(name: str) -> None:
        if name.startswith("before transfer"):
            cluster.nodes.cut = {len(cluster.nodes.calls): "node1"}

    cluster.extra_point = cut
    while not any("Waiting for node node1" in text for text in _log(cluster, number)):
        await cluster._sleep(1)
    await off(cluster, "node1")
    assert (await cluster.finished(number)).status == "success"
    assert cluster.config.instance("web1").primary_node == "node2"
    assert runs_on(cluster) == ["node2"]


def _log(cluster: SimCluster, number: int) -> list[str]:
    return [entry[3] for op in cluster.engine.job(number).ops for entry in op.log]


async def test_a_transfer_that_fails_leaves_everything_as_it_was(
    cluster: SimCluster,
) -> None:
    before = await picture(cluster)

    async def lose(name: str) -> None:
        if name.startswith("before transfer"):
            web1 = cluster.config.instance("web1").uuid
            del cluster.nodes.san.guests[f"node2 {web1}"]  # its process died

    cluster.extra_point = lose
    error = await cluster.refused(MIGRATE, instance_name="web1", target_node="node2")
    assert "nobody waits for guest web1" in str(error)
    assert (await picture(cluster)).differences(before) == []


# -- stopped and removed -----------------------------------------------------------


@pytest.mark.requirement("S3-27")
async def test_an_instance_is_removed_with_its_own_disks_alone(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_DETACH", disk="data1")
    kept = cluster.config.disk("data1").volume
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web1")
    assert kept in cluster.nodes.san.volumes
    assert not cluster.config.knows(Disk, "root1")
    assert not cluster.config.knows(Instance, "web1")
    seen = await picture(cluster)
    assert (seen.orphans, seen.missing) == (set(), set())


@pytest.mark.requirement("S3-27")
async def test_start_and_stop_touch_attached_disks_alone(cluster: SimCluster) -> None:
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    assert cluster.nodes.san.attached == {}
    await cluster.run("OP_DISK_DETACH", disk="data1")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    assert cluster.nodes.san.attached == {}  # root1 is a file
    assert runs_on(cluster) == ["node1"]


@pytest.mark.requirement("S3-27")
async def test_a_move_touches_attached_disks_alone(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_DETACH", disk="data1")
    left = cluster.config.disk("data1")
    await cluster.run(MIGRATE, instance_name="web1", target_node="node2")
    await cluster.run(FAILOVER, instance_name="web1", target_node="node3")
    await cluster.run("OP_INSTANCE_REBOOT", instance_name="web1")
    assert cluster.config.disk("data1") == left
    assert cluster.nodes.san.attached == {}
    ran = [one for name in ("node2", "node3") for one in all_ran(cluster, name)]
    assert not any(one.env.get("VOL_NAME") == left.volume for one in ran)


def all_ran(cluster: SimCluster, node: str) -> list[Any]:
    return cluster.nodes.nodes[node].machine.ran


async def test_a_volume_that_cannot_be_removed_is_kept_in_sight(
    cluster: SimCluster,
) -> None:
    """The other disk of the instance goes all the same."""
    root, data = cluster.config.disk("root1"), cluster.config.disk("data1")
    machine = cluster.nodes.nodes["node1"].machine
    machine.refuse = lambda _, command: "rm" in command.argv
    error = await cluster.refused("OP_INSTANCE_REMOVE", instance_name="web1")
    assert "told to" in str(error)
    assert not cluster.config.knows(Instance, "web1")
    left = cluster.config.disk("root1")
    assert left.uuid == root.uuid
    assert left.quarantine
    assert "remove disk root1" in left.quarantine
    assert data.volume not in cluster.nodes.san.volumes
    assert not cluster.config.knows(Disk, "data1")
    machine.refuse = lambda _, _command: False
    await cluster.run("OP_DISK_REMOVE", disk="root1")
    assert (await picture(cluster)).orphans == set()


async def test_starting_twice_is_starting_once(cluster: SimCluster) -> None:
    before = await picture(cluster)
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    assert (await picture(cluster)).differences(before) == []


@pytest.mark.requirement("S0-57", "S0-65")
async def test_active_disks_say_where_they_are(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ATTACH", disk="user", instance_name="web3")
    told = await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", instance_name="web3")
    root, user = cluster.config.disk("root3"), cluster.config.disk("user")
    assert told == [
        ["node3", "disk/0", f"/dev/{root.volume}"],
        ["node3", "disk/1", f"nbd:unix:/sim/{user.volume}"],
    ]
    await cluster.run("OP_INSTANCE_DEACTIVATE_DISKS", instance_name="web3")
    assert not any(key.startswith("node3") for key in cluster.nodes.san.attached)
