# SPDX-License-Identifier: BSD-2-Clause
"""Clones of disks: by snapshots where the storage makes them, else by copying."""

import pytest
from converted import data, disk, ran, volumes

from moorage.testing.scenarios import harbour


@pytest.fixture
async def cluster(tmp_path):
    made = await harbour(tmp_path)
    for node in made.nodes.nodes.values():
        node.machine.ran.clear()
    yield made
    await made.stop()


async def clone(cluster, name, **fields):
    for node in cluster.nodes.nodes.values():
        node.machine.ran.clear()
    uuid = await cluster.run("OP_DISK_CLONE", disk=name, new_name="copy", **fields)
    made = cluster.config.disk(uuid)
    assert (made.name, made.epoch) == ("copy", 0)
    assert cluster.config.owner(made) is None
    assert data(cluster, "copy") == data(cluster, name)
    return made


@pytest.mark.parametrize("name", ["spare", "data1"])
async def test_a_provider_makes_clones_by_its_snapshots(cluster, name):
    made = await clone(cluster, name)
    assert made.volume.endswith(".snap")
    assert ran(cluster, "snapshot")
    assert not ran(cluster, "convert")


@pytest.mark.parametrize(
    ("name", "copied"), [("root3", True), ("root1", False), ("user", False)]
)
async def test_what_makes_no_snapshots_of_one_moment_is_copied(cluster, name, copied):
    made = await clone(cluster, name)
    assert made.dev_type == disk(cluster, name).dev_type
    assert ran(cluster, "convert") == copied
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web3")
    assert cluster.nodes.san.broken == []


@pytest.mark.parametrize("name", ["spare", "root1", "root3", "data1"])
async def test_a_clone_goes_to_any_storage(cluster, name):
    made = await clone(cluster, name, disk_template="file", node=HOME.get(name))
    assert made.nodes == (HOME.get(name, "node1"),)
    guest = cluster.nodes.san.guests["node1 " + cluster.config.instance("web1").uuid]
    assert guest["state"]["state"] == "running"
    assert not any(guest.get("mirrors", {}).values())


HOME = {"root3": "node3"}


async def test_a_name_that_is_taken_is_refused(cluster):
    before = volumes(cluster)
    told = await cluster.refused("OP_DISK_CLONE", disk="spare", new_name="data1")
    assert "exists already" in told.message
    told = await cluster.refused(
        "OP_DISK_CLONE", disk="root1", new_name="data1", provider="san"
    )
    assert volumes(cluster) == before
