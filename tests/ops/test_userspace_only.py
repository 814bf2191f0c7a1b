# SPDX-License-Identifier: BSD-2-Clause
"""Disks with a URI only, in every operation; storage with locks, in a migration."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from moorage.errors import Failed, MoorageError
from moorage.protocol import AttachDisk, silent, to_wire
from moorage.storage import Command
from moorage.testing.cluster import SimCluster

USER = {"size": 64, "provider": "usersan", "access": "userspace"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


async def born(cluster: SimCluster, disk: dict[str, Any], **more: Any) -> None:
    fields = {"instance_name": "web", "pnode": "node1", "disk_template": "ext"}
    await cluster.run("OP_INSTANCE_CREATE", disks=[disk], **(fields | more))


def ran(cluster: SimCluster, node: str) -> list[Command]:
    return cluster.nodes.nodes[node].machine.ran


def volume(cluster: SimCluster) -> str:
    (name,) = cluster.nodes.san.volumes
    return name


# -- by their URI ----------------------------------------------------------------------


@pytest.mark.requirement("S0-65", "S0-72")
async def test_os_scripts_get_the_uri_and_a_file_that_leads_to_it(
    cluster: SimCluster,
) -> None:
    await born(cluster, USER, os_type="tiny")
    (script,) = [
        one for one in ran(cluster, "node1") if one.argv[0].endswith("tiny/create")
    ]
    machine = cluster.nodes.nodes["node1"].machine
    assert machine.served == [f"nbd:unix:/sim/{volume(cluster)}"]
    assert script.env["DISK_0_URI"] == machine.served[0]
    assert script.env["DISK_0_PATH"] == "/sim/served/1"
    assert script.env["DISK_0_BACKEND_TYPE"] == "file:loop"
    assert script.images == {}


@pytest.mark.requirement("S0-72")
async def test_a_node_that_cannot_make_a_file_of_it_hands_over_the_uri_alone(
    cluster: SimCluster,
) -> None:
    machine = cluster.nodes.nodes["node1"].machine
    machine.serves = False
    await born(cluster, USER, os_type="tiny")
    (script,) = [one for one in machine.ran if one.argv[0].endswith("tiny/create")]
    assert script.env["DISK_0_URI"]
    assert "DISK_0_PATH" not in script.env


@pytest.mark.requirement("S0-72", "S0-73")
async def test_one_that_is_smaller_than_its_record_is_not_started(
    cluster: SimCluster,
) -> None:
    await born(cluster, USER, start=False)
    name = volume(cluster)
    cluster.nodes.san.volumes[name] |= {"size": 32}
    with pytest.raises(Failed, match=r"has 32 MiB on node node1, .* says 64"):
        await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run(
        "OP_INSTANCE_ACTIVATE_DISKS", instance_name="web", ignore_size=True
    )


@pytest.mark.requirement("S0-72")
async def test_a_whole_life_without_a_device(cluster: SimCluster) -> None:
    await born(cluster, USER | {"name": "d"})
    run = cluster.run
    await run("OP_DISK_GROW", disk="d", amount=64)
    await run("OP_DISK_SNAPSHOT", disk="d", new_name="s")
    await run("OP_INSTANCE_MIGRATE", instance_name="web", target_node="node2")
    await run("OP_INSTANCE_FAILOVER", instance_name="web", target_node="node3")
    await run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await run("OP_DISK_GROW", disk="d", amount=64)
    await run("OP_INSTANCE_ACTIVATE_DISKS", instance_name="web")
    await run("OP_INSTANCE_DEACTIVATE_DISKS", instance_name="web")
    await run("OP_INSTANCE_STARTUP", instance_name="web")
    await run("OP_DISK_DETACH", disk="d")
    await run("OP_DISK_ATTACH", disk="s", instance_name="web")
    told = await run("OP_CLUSTER_VERIFY")
    assert told["errors"] == []
    await run("OP_DISK_REMOVE", disk="d")
    await run("OP_INSTANCE_REMOVE", instance_name="web")
    assert not dict(cluster.nodes.san.volumes)
    tested = [
        one
        for node in cluster.nodes.nodes
        for one in ran(cluster, node)
        if one.argv[0] == "test"
    ]
    assert tested == []


@pytest.mark.requirement("S0-48")
@pytest.mark.parametrize("provider", ["san", "usersan"])
async def test_a_snapshot_is_as_large_as_the_storage_made_the_volume(
    cluster: SimCluster, provider: str
) -> None:
    await born(cluster, {"size": 64, "provider": provider, "name": "d"})
    cluster.nodes.san.volumes[volume(cluster)] |= {"size": 96}
    await cluster.run("OP_DISK_SNAPSHOT", disk="d", new_name="s")
    (script,) = [
        one for one in ran(cluster, "node1") if one.argv[0].endswith("/snapshot")
    ]
    assert script.env["VOL_SNAPSHOT_SIZE"] == "96"


# -- storage with locks ----------------------------------------------------------------


def opened(cluster: SimCluster) -> dict[str, Any]:
    """Return who has the volume open, and how: True is alone."""
    found = cluster.nodes.san.attached
    return {key.split()[0]: one["open"] for key, one in found.items()}


@pytest.mark.requirement("S0-49", "S0-55", "S0-56")
async def test_the_simulated_storage_has_locks(cluster: SimCluster) -> None:
    """Ganeti's order, the target first, is refused by it: so ours is proven here."""
    await born(cluster, {"size": 64, "provider": "san"})
    disk = next(iter(cluster.config.disks_of(cluster.config.instance("web"))))

    for how in ("shared", "exclusive"):
        verb, args = to_wire(AttachDisk(disk=disk, opened=how))
        with pytest.raises(MoorageError, match="is open elsewhere"):
            await cluster.nodes.nodes["node2"].agent.handle(verb, args, 9, silent)


@pytest.mark.requirement("S0-49", "S0-55", "S0-56")
@pytest.mark.parametrize(
    "broken",
    ["node1 open", "node2 attach", "node2 open", "node1 close", "node1 detach"],
)
async def test_a_migration_that_storage_breaks_ends_on_one_node_alone(
    cluster: SimCluster, broken: str
) -> None:
    """Whichever script says no once: one node writes in the end, where the guest is."""
    await born(cluster, {"size": 64, "provider": "san"})
    refused: list[str] = []

    def refuse(node: str, command: Command) -> bool:
        said = f"{node} {PurePosixPath(command.argv[0]).name}"
        if said != broken or refused:
            return False
        refused.append(said)
        return True

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = refuse
    move = {"instance_name": "web", "target_node": "node2"}
    with suppress(MoorageError):
        await cluster.run("OP_INSTANCE_MIGRATE", **move)
    assert refused
    home = cluster.config.node(cluster.config.instance("web").primary_node).name
    states = {key.split()[0]: one for key, one in cluster.nodes.san.guests.items()}
    running = [
        node for node, one in states.items() if one["state"]["state"] == "running"
    ]
    assert running == [home]
    assert opened(cluster).get(home) is True
    assert [how for node, how in opened(cluster).items() if node != home and how] == []
    assert cluster.nodes.san.broken == []
