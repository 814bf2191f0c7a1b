# SPDX-License-Identifier: BSD-2-Clause
"""Providers that look at parameters before anything is made, and tell their room."""

from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from moorage.errors import BadInput, NoCapacity
from moorage.model import Disk
from moorage.protocol import GetFacts, silent
from moorage.storage import Command
from moorage.testing.cluster import SimCluster
from moorage.testing.machine import PROVIDERS, provider

NEW = {"disk_template": "ext", "provider": "san", "size": 64}
BAD = {"tier": "paper"}
"""Listed, and nothing that the simulated provider takes."""
WHY = r"(?s)ExtStorage provider 'san' does not take the parameters of disk .*'paper'"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


@pytest.fixture
def ran(cluster: SimCluster) -> list[str]:
    """Return the scripts that ran on any node, in order."""
    found: list[str] = []

    def watch(_node: str, command: Command) -> bool:
        program = PurePosixPath(command.argv[0])
        if "extstorage" in program.parts:
            found.append(program.name)
        return False

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = watch
    return found


async def born(cluster: SimCluster, *disks: dict[str, Any]) -> None:
    fields = {"instance_name": "web", "pnode": "node1", "disk_template": "ext"}
    await cluster.run("OP_INSTANCE_CREATE", disks=list(disks), **fields)


# -- verify ----------------------------------------------------------------------------


@pytest.mark.requirement("S0-31")
async def test_a_new_disk_is_verified_before_it_is_made(
    cluster: SimCluster, ran: list[str]
) -> None:
    with pytest.raises(BadInput, match=WHY):
        await cluster.run("OP_DISK_ADD", **NEW, name="d", params=BAD)
    assert ran == ["verify"]
    assert cluster.nodes.san.volumes == {}
    assert not cluster.config.named(Disk)


@pytest.mark.requirement("S0-31")
async def test_no_disk_of_an_instance_is_made_before_all_are_verified(
    cluster: SimCluster, ran: list[str]
) -> None:
    good = {"size": 64, "provider": "san", "tier": "ssd"}
    with pytest.raises(BadInput, match=WHY):
        await born(cluster, good, good | BAD)
    assert ran == ["verify", "verify"]


@pytest.mark.requirement("S0-31")
async def test_no_disk_is_added_to_an_instance_unverified(
    cluster: SimCluster, ran: list[str]
) -> None:
    await born(cluster, {"size": 64, "provider": "san"})
    before = cluster.config.objects
    ran.clear()
    good = ["add", -1, {"size": 64, "provider": "san"}]
    bad = ["add", -1, {"size": 64, "provider": "san", **BAD}]
    with pytest.raises(BadInput, match=WHY):
        await cluster.run(
            "OP_INSTANCE_SET_PARAMS", instance_name="web", disks=[good, bad]
        )
    assert ran == ["verify", "verify"]
    assert dict(cluster.config.objects) == dict(before)


@pytest.mark.requirement("S0-31")
@pytest.mark.parametrize("attached", [False, True])
async def test_changed_parameters_are_verified(
    cluster: SimCluster, ran: list[str], *, attached: bool
) -> None:
    if attached:
        await born(cluster, {"size": 64, "provider": "san", "name": "d"})
    else:
        await cluster.run("OP_DISK_ADD", **NEW, name="d")
    ran.clear()
    with pytest.raises(BadInput, match=WHY):
        await cluster.run("OP_DISK_SET_PARAMS", disk="d", params=BAD)
    assert ran == ["verify"]
    assert "tier" not in cluster.config.disk("d").params
    await cluster.run("OP_DISK_SET_PARAMS", disk="d", params={"tier": "hdd"})
    assert cluster.config.disk("d").params["tier"] == "hdd"


@pytest.mark.requirement("S0-31")
async def test_changed_parameters_of_an_instances_disk_are_verified(
    cluster: SimCluster, ran: list[str]
) -> None:
    await born(cluster, {"size": 64, "provider": "san", "name": "d"})
    ran.clear()
    with pytest.raises(BadInput, match=WHY):
        await cluster.run(
            "OP_INSTANCE_SET_PARAMS",
            instance_name="web",
            disks=[["modify", 0, BAD]],
        )
    assert ran == ["verify"]


async def test_what_has_no_parameters_to_change_is_not_verified(
    cluster: SimCluster, ran: list[str]
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW, name="d")
    ran.clear()
    await cluster.run("OP_DISK_SET_PARAMS", disk="d", mode="ro")
    assert ran == []


# -- capacity --------------------------------------------------------------------------

TELLING = provider("roomy", "capacity")


@pytest.fixture
def roomy(cluster: SimCluster) -> SimCluster:
    """Return the cluster with a provider that has 1000 MiB, 300 of them free."""
    for node in cluster.nodes.nodes.values():
        node.machine.installed = [*PROVIDERS, TELLING]
    cluster.nodes.san.capacity["roomy"] = "1000 300\n"
    return cluster


async def test_what_does_not_fit_is_refused_with_the_numbers(
    roomy: SimCluster,
) -> None:
    new = NEW | {"provider": "roomy"}
    with pytest.raises(NoCapacity, match=r"ext/roomy \(asked 400 MiB, free 300 MiB\)"):
        await roomy.run("OP_DISK_ADD", **(new | {"size": 400}))
    await roomy.run("OP_DISK_ADD", **(new | {"size": 200}))


async def test_an_instance_goes_where_its_disks_fit(roomy: SimCluster) -> None:
    wanted = {"instance_name": "web", "disk_template": "ext", "iallocator": "hail"}
    large = [{"size": 400, "provider": "roomy"}]
    with pytest.raises(NoCapacity, match="ext/roomy"):
        await roomy.run("OP_INSTANCE_CREATE", disks=large, **wanted)
    small = [{"size": 200, "provider": "roomy"}]
    await roomy.run("OP_INSTANCE_CREATE", disks=small, **wanted)


@pytest.mark.parametrize("printed", ["", "many\n", "100 200\n", "-1 0\n", "1 2 3 4\n"])
async def test_room_that_is_not_told_refuses_nothing(
    roomy: SimCluster, printed: str
) -> None:
    roomy.nodes.san.capacity["roomy"] = printed
    await roomy.run("OP_DISK_ADD", **(NEW | {"provider": "roomy", "size": 1 << 20}))


async def test_queries_tell_the_room(roomy: SimCluster) -> None:
    facts = roomy.nodes.nodes["node1"]
    asked = {"places": [{"template": "ext"}]}
    told = await facts.agent.handle(GetFacts().verb, asked, 1, silent)
    (unit,) = [one for one in told["units"] if one["key"] == "roomy"]
    assert (unit["total"], unit["free"]) == (1000, 300)
    (unit,) = [one for one in told["units"] if one["key"] == "san"]
    assert (unit.get("total"), unit.get("free")) == (None, None)
