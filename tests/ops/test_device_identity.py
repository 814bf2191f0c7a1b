# SPDX-License-Identifier: BSD-2-Clause
"""One device is one disk, whatever it is called, and wherever its name leads."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import MoorageError
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import LUN, harbour
from moorage.testing.state_snapshot import picture

ADD, ATTACH = "OP_DISK_ADD", "OP_DISK_ATTACH"
BLOCKDEV = {"disk_template": "blockdev"}
BY_PATH = "/dev/disk/by-path/lun1"
SECOND = "/dev/disk/by-id/lun2"
NODES = ("node1", "node2", "node3")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    devices = cluster.nodes.san.devices
    devices[BY_PATH] = {"size": 2048, "identity": "wwn-1", "number": LUN}
    devices[SECOND] = {"size": 512, "identity": "wwn-2"}
    yield cluster
    assert cluster.nodes.san.broken == []
    await cluster.stop()


def leads_elsewhere(cluster: SimCluster, node: str, path: str = LUN) -> None:
    """Let a name mean another device of the same size on one node."""
    size = cluster.nodes.san.devices[path]["size"]
    other = {"size": size, "identity": "wwn-OTHER", "number": "8:64"}
    cluster.nodes.san.devices[f"{node}:{path}"] = other


async def untouched(
    cluster: SimCluster, sentence: str, op_id: str, **fields: Any
) -> MoorageError:
    """Let a request be refused, with nothing changed anywhere, not even for a while."""
    before = await picture(cluster)
    begun = len(cluster.nodes.calls)
    error = await cluster.refused(op_id, **fields)
    assert sentence in error.message
    asked = {verb for _, verb in cluster.nodes.calls[begun:]}
    looks = {"guest", "guests", "facts", "providers", "devices", "processor"}
    assert asked <= looks, asked
    assert (await picture(cluster)).differences(before) == []
    return error


async def verified(cluster: SimCluster) -> list[str]:
    found = await cluster.run("OP_CLUSTER_VERIFY")
    return [one["message"] for one in found["errors"]]


# -- adopted ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "/dev/disk/by-id//lun1",
        "/dev//disk/by-id/./lun1",
        BY_PATH,
        "/dev/disk/by-path//lun1",
    ],
)
async def test_a_device_of_many_names_is_adopted_once(
    cluster: SimCluster, name: str
) -> None:
    await cluster.run(ADD, **BLOCKDEV, name="lun", adopt="/dev/disk/by-id//lun1")
    assert cluster.config.disk("lun").logical_id == ("manual", LUN)
    assert cluster.config.disk("lun").identity == "wwn-1"
    await untouched(cluster, "is disk lun already", ADD, **BLOCKDEV, adopt=name)
    disks = [{"adopt": name, "dev_type": "blockdev"}]
    new = {"instance_name": "w", "pnode": "node2", "disks": disks}
    await untouched(cluster, "is disk lun already", "OP_INSTANCE_CREATE", **new)
    mods = [["add", "-1", disks[0]]]
    modify = {"instance_name": "web3", "disks": mods}
    await untouched(cluster, "is disk lun already", "OP_INSTANCE_SET_PARAMS", **modify)


@pytest.mark.parametrize("identity", ["", "wwn-1"], ids=["by number", "by identity"])
async def test_one_device_under_two_names_in_one_request(
    cluster: SimCluster, identity: str
) -> None:
    for path in (LUN, BY_PATH):
        known = cluster.nodes.san.devices[path]
        cluster.nodes.san.devices[path] = known | {"identity": identity}
    disks = [{"adopt": path, "dev_type": "blockdev"} for path in (LUN, BY_PATH)]
    new = {"instance_name": "w", "pnode": "node2", "disks": disks}
    sentence = f"{LUN} and {BY_PATH} are one device"
    await untouched(cluster, sentence, "OP_INSTANCE_CREATE", **new)
    mods = {"instance_name": "web3", "disks": [["add", "-1", one] for one in disks]}
    await untouched(cluster, sentence, "OP_INSTANCE_SET_PARAMS", **mods)


async def test_two_names_of_a_device_are_adopted_at_one_time(
    cluster: SimCluster,
) -> None:
    paths = (LUN, BY_PATH, SECOND, SECOND, SECOND)
    numbers = [await cluster.submit(ADD, **BLOCKDEV, adopt=path) for path in paths]
    jobs = [await cluster.finished(number) for number in numbers]
    assert [job.status for job in jobs].count("success") == 2


async def test_a_device_without_identity_is_known_by_its_number(
    cluster: SimCluster,
) -> None:
    plain = {"size": 64, "identity": "", "number": "7:1"}
    for name in ("a", "b"):
        cluster.nodes.san.devices[f"/dev/disk/by-id/{name}"] = plain
    await cluster.run(ADD, **BLOCKDEV, name="first", adopt="/dev/disk/by-id/a")
    sentence = "device /dev/disk/by-id/b is disk first already"
    await untouched(cluster, sentence, ADD, **BLOCKDEV, adopt="/dev/disk/by-id/b")


async def test_a_part_of_an_adopted_device_is_not_another_one(
    cluster: SimCluster,
) -> None:
    part = "/dev/disk/by-id/lun1-part1"
    cluster.nodes.san.devices[part] = {"size": 64, "identity": "wwn-1-part1"}
    await cluster.run(ADD, **BLOCKDEV, name="lun", adopt=LUN)
    await untouched(cluster, "is disk lun already", ADD, **BLOCKDEV, adopt=part)


async def test_a_device_is_known_by_its_identity_when_its_old_name_is_gone(
    cluster: SimCluster,
) -> None:
    await cluster.run(ADD, **BLOCKDEV, name="lun", adopt=LUN)
    moved = cluster.nodes.san.devices[BY_PATH] | {"number": "8:99"}
    del cluster.nodes.san.devices[LUN]
    cluster.nodes.san.devices[BY_PATH] = moved
    await untouched(cluster, "is disk lun already", ADD, **BLOCKDEV, adopt=BY_PATH)


async def test_a_name_that_came_to_mean_a_part_of_another_disk_is_told(
    cluster: SimCluster,
) -> None:
    for name, path in (("lun", LUN), ("second", SECOND)):
        await cluster.run(ADD, **BLOCKDEV, name=name, adopt=path)
    part = {"size": 512, "identity": "wwn-1-part1", "number": "8:17"}
    cluster.nodes.san.devices[SECOND] = part
    told = await verified(cluster)
    assert any("it is the same device as disk second on node" in one for one in told)


@pytest.mark.requirement("S0-21")
async def test_devices_of_one_size_and_different_identity_are_refused(
    cluster: SimCluster,
) -> None:
    """Presence and size alone prove nothing; verify says it of one adopted before."""
    leads_elsewhere(cluster, "node2")
    sentence = f"{LUN} is not the same device on every node"
    await untouched(cluster, sentence, ADD, **BLOCKDEV, adopt=LUN)
    del cluster.nodes.san.devices[f"node2:{LUN}"]
    await cluster.run(ADD, **BLOCKDEV, name="lun", adopt=LUN)
    assert await verified(cluster) == []
    leads_elsewhere(cluster, "node2")
    (told,) = await verified(cluster)
    assert "not its device on node node2: it is wwn-OTHER instead of wwn-1" in told
    del cluster.nodes.san.devices[f"node2:{LUN}"]
    cluster.nodes.san.devices[LUN] = {"size": 4096, "identity": "wwn-1"}
    assert "it has 4096 MiB instead of 2048" in (await verified(cluster))[0]
    del cluster.nodes.san.devices[LUN]
    assert (
        "node node1 of group default has no block device"
        in (await verified(cluster))[0]
    )


# -- used ------------------------------------------------------------------------------


@pytest.fixture
async def lun(cluster: SimCluster) -> SimCluster:
    """The cluster, with the instance *w* that runs on an adopted device on node1."""
    disks = [{"adopt": LUN, "dev_type": "blockdev", "name": "lun"}]
    new = {"instance_name": "w", "pnode": "node1", "disks": disks}
    await cluster.run("OP_INSTANCE_CREATE", **new)
    return cluster


MOVES = ["OP_INSTANCE_MIGRATE", "OP_INSTANCE_FAILOVER"]


@pytest.mark.parametrize("move", MOVES)
async def test_a_guest_does_not_move_onto_another_device(
    lun: SimCluster, move: str
) -> None:
    leads_elsewhere(lun, "node2")
    there = {"instance_name": "w", "target_node": "node2"}
    sentence = f"{LUN} on node node2 is not the device of disk lun: it is wwn-OTHER"
    error = await untouched(lun, sentence, move, **there)
    assert "lsblk" in error.hint
    await lun.run(move, instance_name="w", target_node="node3")


@pytest.mark.parametrize("move", MOVES)
async def test_a_guest_does_not_move_onto_a_device_of_another_size(
    lun: SimCluster, move: str
) -> None:
    lun.nodes.san.devices[f"node2:{LUN}"] = {"size": 4096, "identity": "wwn-1"}
    there = {"instance_name": "w", "target_node": "node2"}
    error = await untouched(lun, "it has 4096 MiB instead of 2048", move, **there)
    assert error.hint == "gnt-cluster repair-disk-sizes"


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(("other", "right"), [("node2", "node3"), ("node3", "node2")])
async def test_the_planner_goes_round_a_node_with_another_device(
    lun: SimCluster, move: str, other: str, right: str
) -> None:
    """Although it is the one with the most room."""
    leads_elsewhere(lun, other)
    full = {"instance_name": "full", "pnode": right, "disk_template": "diskless"}
    await lun.run("OP_INSTANCE_CREATE", **full, beparams={"memory": 20_000})
    await lun.run(move, instance_name="w")
    assert lun.config.instance("w").primary_node == right


async def test_a_disk_is_not_attached_where_its_name_means_another_device(
    cluster: SimCluster,
) -> None:
    await cluster.run(ADD, **BLOCKDEV, name="lun", adopt=LUN)
    leads_elsewhere(cluster, "node2")
    sentence = "is not the device of disk lun"
    web2 = {"disk": "lun", "instance_name": "web2"}
    await untouched(cluster, sentence, ATTACH, **web2)
    mods = {"instance_name": "web2", "disks": [["attach", "-1", {"name": "lun"}]]}
    await untouched(cluster, sentence, "OP_INSTANCE_SET_PARAMS", **mods)
    await cluster.run(ATTACH, disk="lun", instance_name="web1")


async def test_a_guest_does_not_start_on_another_device(lun: SimCluster) -> None:
    await lun.run("OP_INSTANCE_SHUTDOWN", instance_name="w")
    leads_elsewhere(lun, "node1")
    sentence = "is not the device of disk lun"
    await untouched(lun, sentence, "OP_INSTANCE_STARTUP", instance_name="w")


async def test_the_node_itself_compares_what_it_attaches(lun: SimCluster) -> None:
    """Between the question and the attach a name may come to mean something else."""
    await lun.run("OP_INSTANCE_SHUTDOWN", instance_name="w")

    async def swapped(name: str) -> None:
        if name.startswith("before attach"):
            leads_elsewhere(lun, "node1")

    lun.extra_point = swapped
    error = await lun.refused("OP_INSTANCE_STARTUP", instance_name="w")
    assert "disk lun is device wwn-1, and on node node1 its path leads to" in (
        error.message
    )
    assert lun.config.disk("lun").quarantine is None


async def test_names_that_came_to_mean_one_device(cluster: SimCluster) -> None:
    """Two disks, and then one's name leads to the other's device: seen and refused."""
    plain = {"size": 64, "identity": ""}
    paths = {name: f"/dev/disk/by-path/{name}" for name in ("a", "b")}
    for number, (name, path) in enumerate(paths.items()):
        cluster.nodes.san.devices[path] = plain | {"number": f"7:{number}"}
        await cluster.run(ADD, **BLOCKDEV, name=name, adopt=path)
    await cluster.run(ATTACH, disk="a", instance_name="web1")
    cluster.nodes.san.devices[paths["b"]] = plain | {"number": "7:0"}
    sentence = "is the same device as disk a, which instance web1 has"
    await untouched(cluster, sentence, ATTACH, disk="b", instance_name="web2")
    (told,) = await verified(cluster)
    assert "it is the same device as disk b on node node1, node2, node3" in told


# -- sizes -----------------------------------------------------------------------------


def really(cluster: SimCluster, disk: str, size: int) -> None:
    """Let a provider's volume have another size than it was asked for."""
    volume = cluster.config.disk(disk).volume
    known = cluster.nodes.san.volumes[volume]
    cluster.nodes.san.volumes[volume] = known | {"real": size}


async def log(cluster: SimCluster, op_id: str, **fields: Any) -> list[str]:
    job = await cluster.finished(await cluster.submit(op_id, **fields))
    assert job.status == "success", job.ops[0].error
    return [str(entry[3]) for entry in job.ops[0].log]


async def test_a_device_that_is_too_small_is_not_given_to_a_guest(
    cluster: SimCluster,
) -> None:
    really(cluster, "spare", 1000)
    attach = {"disk": "spare", "instance_name": "web1"}
    error = await cluster.refused(ATTACH, **attach)
    assert error.message == (
        "the device of disk spare has 1000 MiB on node node1, and its record says "
        "1024 MiB"
    )
    alone = "gnt-cluster repair-disk-sizes --disk spare"
    assert error.hint.startswith(f"while no instance has it: {alone}; else: gnt-")
    assert cluster.config.owner(cluster.config.disk("spare")) is None
    assert cluster.nodes.san.attached.keys() == {
        f"node1 {cluster.config.disk('data1').volume}"
    }
    really(cluster, "spare", 1028)
    (told,) = await log(cluster, ATTACH, **attach)
    assert told.startswith("Warning: the device of disk spare has 1028 MiB")


async def test_a_size_may_be_ignored(cluster: SimCluster) -> None:
    really(cluster, "root3", 255)
    activate = {"instance_name": "web3"}
    await cluster.refused("OP_INSTANCE_ACTIVATE_DISKS", **activate)
    assert not cluster.config.instance("web3").disks_active
    told = await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", **activate, ignore_size=True)
    assert told[0][:2] == ["node3", "disk/0"]
    repair = {"instances": ["web3"]}
    fixed = await cluster.run("OP_CLUSTER_REPAIR_DISK_SIZES", **repair)
    assert fixed == [["web3", 0, "size", 255]]
    await cluster.run("OP_INSTANCE_STARTUP", **activate)


async def test_growth_that_did_not_happen_is_told(cluster: SimCluster) -> None:
    really(cluster, "data1", 256)
    error = await cluster.refused("OP_DISK_GROW", disk="data1", amount=256)
    assert error.message == (
        "the storage of disk data1 says that it grew to 512 MiB, and on node node1 it "
        "has 256 MiB"
    )
    assert cluster.config.disk("data1").size == 256


async def test_sizes_are_repaired(cluster: SimCluster) -> None:
    """In verify until then; what cannot be measured is left out, aloud."""
    really(cluster, "data1", 300)
    await cluster.run("OP_CLUSTER_REPAIR_DISK_SIZES", instances=["web2"])
    found = await cluster.run("OP_CLUSTER_VERIFY")
    (told,) = (one for one in found["warnings"] if one["object"] == "disk data1")
    assert told["message"] == (
        "its device has 300 MiB on node node1, and its record says 256 MiB"
    )
    assert told["hint"] == "gnt-cluster repair-disk-sizes web1"
    really(cluster, "data1", 200)
    assert "its device has 200 MiB" in (await verified(cluster))[0]
    number = await cluster.submit("OP_CLUSTER_REPAIR_DISK_SIZES", instances=[])
    job = await cluster.finished(number)
    assert job.ops[0].result == [["web1", 1, "size", 200]]
    told = [str(entry[3]) for entry in job.ops[0].log]
    (left,) = told
    assert left.startswith("Warning: disk/0 of web3 is left out: it is not attached")
    assert cluster.config.disk("data1").size == 200
    assert await verified(cluster) == []
    assert await cluster.run("OP_CLUSTER_REPAIR_DISK_SIZES") == []


async def test_a_file_is_measured_where_it_lies(cluster: SimCluster) -> None:
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    volume = cluster.config.disk("root1").volume
    cluster.nodes.san.files[volume] = {"size": 100 << 20, "data": ""}
    error = await cluster.refused("OP_INSTANCE_STARTUP", instance_name="web1")
    assert "has 100 MiB on node node1, and its record says 512 MiB" in error.message
    assert error.hint == "gnt-cluster repair-disk-sizes"
    assert await cluster.run("OP_CLUSTER_REPAIR_DISK_SIZES", instances=["web1"]) == [
        ["web1", 0, "size", 100]
    ]
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")


async def test_a_lun_that_grew_is_measured_where_it_lies(lun: SimCluster) -> None:
    await lun.run("OP_INSTANCE_SHUTDOWN", instance_name="w")
    lun.nodes.san.devices[LUN] = {"size": 4096, "identity": "wwn-1"}
    error = await lun.refused("OP_INSTANCE_STARTUP", instance_name="w")
    assert error.hint == "gnt-cluster repair-disk-sizes"
    assert await lun.run("OP_CLUSTER_REPAIR_DISK_SIZES", instances=["w"]) == [
        ["w", 0, "size", 4096]
    ]
    await lun.run("OP_INSTANCE_STARTUP", instance_name="w")
