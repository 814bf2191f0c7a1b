# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for disks: at rest, and while the guest runs."""

import pytest

from moorage.errors import BadInput, NoCapacity, NotSupported, WrongState
from moorage.testing.scenarios import LUN, harbour


@pytest.fixture
async def cluster(tmp_path):
    made = await harbour(tmp_path)
    yield made
    await made.stop()


def disk(cluster, name):
    return cluster.config.disk(name)


def data(cluster, name):
    """Return what the disk's volume holds."""
    found, san = disk(cluster, name), cluster.nodes.san
    local = f"{found.nodes[0]}:" if found.nodes else ""
    places = (
        san.files.get(local + found.volume),
        san.volumes.get(found.volume),
        san.devices.get(found.volume),
    )
    return next(place for place in places if place)["data"]


def volumes(cluster):
    return {*cluster.nodes.san.volumes, *cluster.nodes.san.files}


async def convert(cluster, name, **fields):
    await cluster.run("OP_DISK_CONVERT", disk=name, **fields)
    return disk(cluster, name)


async def test_a_detached_disk_goes_to_a_file_and_stays_the_disk_that_it_is(cluster):
    old = disk(cluster, "spare")
    new = await convert(cluster, "spare", disk_template="sharedfile")
    assert data(cluster, "spare") == f"written to {old.volume}"
    assert (new.uuid, new.name, new.size) == (old.uuid, "spare", 1024)
    assert new.dev_type == "sharedfile"
    assert new.epoch == old.epoch + 1
    assert old.volume not in volumes(cluster)
    assert len(cluster.nodes.nodes["node1"].agent._station.held.all()) == 2  # web1's


async def test_a_file_goes_to_a_provider_by_its_uri(cluster):
    before = data(cluster, "spare")
    await convert(cluster, "spare", disk_template="sharedfile")
    new = await convert(
        cluster, "spare", disk_template="ext", provider="usersan", access="userspace"
    )
    assert new.params == {"provider": "usersan", "access": "userspace"}
    assert data(cluster, "spare") == before


async def test_a_disk_goes_to_a_node_that_is_named(cluster):
    before = data(cluster, "spare")
    new = await convert(cluster, "spare", disk_template="file", node="node2")
    assert new.nodes == ("node2",)
    assert data(cluster, "spare") == before


@pytest.mark.parametrize("name", ["root1", "data1"])
async def test_a_running_guest_keeps_running(cluster, name):
    slot = cluster.config.instance("web1").disks.index(disk(cluster, name).uuid)
    before = data(cluster, name)
    new = await convert(cluster, name, disk_template="ext", provider="usersan")
    guest = cluster.nodes.san.guests["node1 " + cluster.config.instance("web1").uuid]
    assert guest["state"]["state"] == "running"
    assert guest["drives"][new.uuid].endswith(new.volume)
    assert cluster.config.instance("web1").disks[slot] == new.uuid
    assert data(cluster, name) == before
    await cluster.run("OP_DISK_GROW", disk=name, amount=64)
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node2")
    await cluster.run("OP_DISK_DETACH", disk=name)
    assert cluster.nodes.san.broken == []


async def test_a_device_is_overwritten_if_it_is_large_enough(cluster):
    before = data(cluster, "spare")
    new = await convert(cluster, "spare", disk_template="blockdev", adopt=LUN)
    assert (new.volume, new.size, new.identity) == (LUN, 2048, "wwn-1")
    assert data(cluster, "spare") == before
    again = await convert(cluster, "spare", disk_template="ext", provider="san")
    assert again.size == 2048
    assert LUN in cluster.nodes.san.devices


async def test_a_device_that_is_too_small_is_refused(cluster):
    cluster.nodes.san.devices[LUN]["size"] = 512
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="spare", disk_template="blockdev", adopt=LUN
    )
    assert "would not hold the data" in told.message


@pytest.mark.parametrize(
    ("name", "fields", "kind", "said"),
    [
        ("spare", {}, WrongState, "in such storage already"),
        ("spare", {"provider": "nosuch"}, None, "no ExtStorage provider 'nosuch'"),
        ("spare", {"disk_template": "ext"}, BadInput, "Missing provider"),
        ("spare", {"disk_template": "blockdev"}, BadInput, "adopts devices"),
        ("spare", {"disk_template": "file", "node": "node9"}, None, "node9"),
        ("root1", {"disk_template": "file", "node": "node2"}, WrongState, "not on"),
        ("spare", {"provider": "plainsan", "rate": -1}, BadInput, "rate"),
    ],
)
async def test_what_cannot_be_is_refused(cluster, name, fields, kind, said):
    before = volumes(cluster)
    given = fields or {"provider": "san"}
    told = await cluster.refused("OP_DISK_CONVERT", disk=name, **given)
    assert said in told.message
    assert kind is None or isinstance(told, kind)
    assert volumes(cluster) == before


async def test_storage_without_room_is_refused(cluster):
    for node in cluster.nodes.nodes.values():
        node.machine.room = 100
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="spare", disk_template="sharedfile"
    )
    assert isinstance(told, NoCapacity)


async def test_a_read_only_disk_waits_until_its_guest_is_down(cluster):
    await cluster.run("OP_DISK_SET_PARAMS", disk="root1", mode="ro")
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="root1", disk_template="ext", provider="san"
    )
    assert isinstance(told, NotSupported)


async def test_a_volume_that_cannot_be_removed_is_seen_in_quarantine(cluster):
    old = disk(cluster, "spare")
    for node in cluster.nodes.nodes.values():
        node.machine.refuse = lambda _node, one: one.argv[0].endswith("/remove")
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="spare", disk_template="sharedfile"
    )
    assert "the disk has its new volume" in told.hint
    new = disk(cluster, "spare")
    assert new.dev_type == "sharedfile"
    assert new.quarantine is None
    (left,) = [one for one in cluster.config.all(type(old)) if one.quarantine]
    assert left.logical_id == old.logical_id
    assert left.name is None
    assert cluster.config.owner(left) is None
