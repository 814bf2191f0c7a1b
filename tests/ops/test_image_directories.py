# SPDX-License-Identifier: BSD-2-Clause
"""Directories for image files: refused where a node lacks or forbids them."""

import pytest

from moorage.storage.templates.sharedfile import SharedFile
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import PROVIDERS


@pytest.fixture
async def sim(tmp_path):
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(3))
    yield cluster
    await cluster.stop()


def machines(sim):
    return [node.machine for node in sim.nodes.nodes.values()]


async def verified(sim):
    found = await sim.run("OP_CLUSTER_VERIFY")
    return [f"{one['object']}: {one['message']}" for one in found["errors"]]


@pytest.mark.requirement("S0-18")
async def test_a_directory_that_a_node_lacks_is_refused_and_can_be_corrected(sim):
    sim.nodes.nodes["node2"].machine.missing = {"/wrong"}
    wrong = {"shared_file_storage_dir": "/wrong"}
    error = await sim.refused("OP_CLUSTER_SET_PARAMS", **wrong)
    assert error.message == "node node2 has no directory /wrong"
    await sim.run("OP_CLUSTER_SET_PARAMS", shared_file_storage_dir="/right/")
    assert sim.config.cluster.shared_file_storage_dir == "/right"


@pytest.mark.requirement("S0-18")
async def test_a_directory_outside_of_a_nodes_list_is_refused_and_found(sim):
    fields = {"disk_template": "sharedfile", "size": 64}
    await sim.run("OP_DISK_ADD", **fields)
    assert await verified(sim) == []
    sim.nodes.nodes["node3"].machine.allowed = ("/srv/images",)
    (told,) = await verified(sim)
    assert told.startswith("node node3: it does not allow disks in /shared")
    found = await sim.run("OP_CLUSTER_VERIFY")
    (warning,) = found["warnings"]  # no disk is there yet
    assert warning["message"].startswith("it does not allow disks in /local: its list")
    other = {"file_storage_dir": "/srv/other"}
    error = await sim.refused("OP_CLUSTER_SET_PARAMS", **other)
    assert "node node3 does not allow disks in /srv/other" in error.message
    await sim.run("OP_CLUSTER_SET_PARAMS", file_storage_dir="/srv/images/local")
    sim.nodes.nodes["node3"].machine.allowed = ()
    error = await sim.refused("OP_CLUSTER_SET_PARAMS", **other)
    assert "is empty, or not believed because others" in error.message
    assert "which is root's (mode 644)" in error.hint


@pytest.mark.requirement("S0-18")
async def test_a_directory_that_nobody_has_any_more_can_be_left(sim):
    await sim.run("OP_DISK_ADD", disk_template="sharedfile", size=64)
    there = {"shared_file_storage_dir": "/right"}
    error = await sim.refused("OP_CLUSTER_SET_PARAMS", **there)
    assert "it could not be found" in error.message
    for machine in machines(sim):
        machine.missing = {"/shared"}
    assert len(await verified(sim)) == 3
    await sim.run("OP_CLUSTER_SET_PARAMS", **there)


@pytest.mark.requirement("S4-02")
async def test_a_unit_that_a_node_tells_twice_is_an_error(sim, monkeypatch):
    room = SharedFile.room

    def twice(self):
        told = yield from room(self)
        return told * (2 if self.site.node == "node1" else 1)

    monkeypatch.setattr(SharedFile, "room", twice)
    (one,) = await verified(sim)
    assert one == (
        "node node1: it tells of the storage unit sharedfile//shared 2 times"
    )


@pytest.mark.requirement("S0-16")
@pytest.mark.parametrize("drained", [True, False])
async def test_a_node_without_the_provider_does_not_stop_the_others(sim, drained):
    machine = sim.nodes.nodes["node2"].machine
    machine.installed = [one for one in PROVIDERS if one.name != "san"]
    if drained:
        await sim.run("OP_NODE_SET_PARAMS", node_name="node2", drained=True)
    job = await sim.finished(
        await sim.submit("OP_DISK_ADD", disk_template="ext", provider="san", size=64)
    )
    assert job.status == "success"
    warnings = [entry[3] for entry in job.ops[0].log]
    assert any("node node2 has no ExtStorage provider 'san'" in w for w in warnings)
    for number in range(4):
        fields = {
            "instance_name": f"w{number}",
            "disk_template": "ext",
            "disks": [{"size": 64, "provider": "san"}],
        }
        (home,) = await sim.run("OP_INSTANCE_CREATE", **fields)
        assert home != "node2"
