# SPDX-License-Identifier: BSD-2-Clause
"""What cannot be proven safe: seen, kept from use, and let go by a person."""

import pytest

from moorage.errors import WrongState
from moorage.testing.cluster import ClusterBuilder, SimCluster


async def suspect(directory) -> SimCluster:
    """Return a cluster with a disk whose removal failed half-way."""
    cluster = await SimCluster.start(directory, ClusterBuilder().instance("web"))
    await cluster.run(
        "OP_DISK_ADD", name="d", disk_template="ext", provider="san", size=4
    )
    machine = cluster.nodes.nodes["node1"].machine
    machine.refuse = lambda _node, command: command.argv[0].endswith("/remove")
    await cluster.refused("OP_DISK_REMOVE", disk="d")
    machine.refuse = lambda _node, _command: False
    return cluster


async def test_a_suspect_disk_is_seen_and_not_attached(tmp_path):
    cluster = await suspect(tmp_path)
    assert "remove disk d on node1" in cluster.config.disk("d").quarantine
    error = await cluster.refused("OP_DISK_ATTACH", disk="d", instance_name="web")
    assert isinstance(error, WrongState)
    assert "quarantined" in error.message
    found = await cluster.run("OP_CLUSTER_VERIFY")
    assert [one["object"] for one in found["errors"]] == ["disk d"]
    await cluster.stop()


async def test_a_person_lifts_the_quarantine(tmp_path):
    cluster = await suspect(tmp_path)
    epoch = cluster.config.disk("d").epoch
    await cluster.run("OP_DISK_SET_PARAMS", disk="d", lift_quarantine=True)
    assert cluster.config.disk("d").epoch == epoch + 1
    await cluster.run("OP_DISK_ATTACH", disk="d", instance_name="web")
    error = await cluster.refused("OP_DISK_SET_PARAMS", disk="d", lift_quarantine=True)
    assert "is not quarantined" in error.message
    await cluster.stop()


@pytest.mark.parametrize("provider", ["san", "plainsan", "usersan"])
async def test_verify_finds_nothing_after_a_migration(tmp_path, provider):
    builder = ClusterBuilder().instance("web")
    cluster = await SimCluster.start(tmp_path, builder)
    where = {"disk_template": "ext", "provider": provider}
    await cluster.run("OP_DISK_ADD", name="d", size=4, **where)
    await cluster.run("OP_DISK_ATTACH", disk="d", instance_name="web")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web", target_node="node3")
    found = await cluster.run("OP_CLUSTER_VERIFY")
    assert (found["errors"], found["warnings"]) == ([], [])
    await cluster.stop()
