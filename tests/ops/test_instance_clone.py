# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance add --from``: an instance as another one, with copies of its disks."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from converted import data, ran

from moorage.model import Instance
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour
from moorage.testing.scenarios.pier import pier

CREATE = "OP_INSTANCE_CREATE"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    made = await harbour(tmp_path / "nodes")
    await made.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    yield made
    assert made.nodes.san.broken == []
    await made.stop()


async def cloned(cluster: SimCluster, source: str, **more: Any) -> Instance:
    for node in cluster.nodes.nodes.values():
        node.machine.ran.clear()
    asked = {"instance_name": "new", "mode": "clone", "src_instance": source}
    await cluster.run(CREATE, **asked | more)
    return cluster.config.instance("new")


async def refused(cluster: SimCluster, source: str, **more: Any) -> str:
    before = cluster.config.objects
    asked = {"instance_name": "new", "mode": "clone", "src_instance": source}
    told = await cluster.refused(CREATE, **asked | more)
    assert cluster.config.objects == before
    return told.message


@pytest.mark.parametrize("node", ["node1", "node2", None])
async def test_it_runs_with_copies_wherever_they_can_be_used(
    cluster: SimCluster, node: str | None
) -> None:
    source = cluster.config.instance("web1")
    made = await cloned(cluster, "web1", pnode=node, disks=[])
    assert made.primary_node == node or (node is None and made.primary_node)
    assert made.uuid != source.uuid
    assert made.admin_state == "up"
    pairs = zip(source.disks, made.disks, strict=True)
    for old, new in pairs:
        assert data(cluster, new) == data(cluster, old)
        was, now = cluster.config.disk(old), cluster.config.disk(new)
        assert (now.dev_type, now.size, now.mode) == (was.dev_type, was.size, was.mode)
        assert now.volume != was.volume
        assert now.last_node == made.primary_node
    assert f"{made.primary_node} {made.uuid}" in cluster.nodes.san.guests
    assert cluster.config.instance("web1") == source
    for other in ("node3", "node2"):
        await cluster.run("OP_INSTANCE_MIGRATE", instance_name="new", target_node=other)
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")


async def test_storage_that_clones_is_asked_to_and_other_data_are_copied(
    cluster: SimCluster,
) -> None:
    await cloned(cluster, "web3")
    assert ran(cluster, "convert")
    assert not ran(cluster, "snapshot")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="new")
    disk = [["detach", "root1", {}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", disks=disk)
    await cloned(cluster, "web1")
    assert ran(cluster, "snapshot")
    assert not ran(cluster, "convert")


async def test_it_is_as_the_other_one_but_for_what_is_said(
    cluster: SimCluster,
) -> None:
    mods = {"beparams": {"maxmem": 256, "minmem": 256}, "os_name": "tiny"}
    nics = [["add", "0", {"network": "lan", "ip": "pool", "filter": "mac"}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", nics=nics)
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", **mods)
    tags = {"kind": "instance", "name": "web1", "tags": ["prod"]}
    await cluster.run("OP_TAGS_SET", **tags)
    source = cluster.config.instance("web1")
    made = await cloned(cluster, "web1", beparams={"vcpus": 2}, start=False)
    assert made.beparams == {"maxmem": 256, "minmem": 256, "vcpus": 2}
    assert made.os == "tiny"
    assert made.tags == ("prod",)
    assert made.admin_state == "down"
    (was,), (now,) = source.nics, made.nics
    assert now.network == was.network
    assert now.nicparams.get("filter") == "mac"  # it sends no more than the other one
    assert now.mac != was.mac
    assert now.ip not in (None, was.ip)
    assert cluster.nodes.san.guests.keys().isdisjoint({f"node1 {made.uuid}"})


async def test_the_system_on_the_copies_is_told_its_name(cluster: SimCluster) -> None:
    made = await cloned(cluster, "web1", os_type="tiny", pnode="node2")
    machine = cluster.nodes.nodes["node2"].machine
    (told,) = (one for one in machine.ran if one.argv[-1].endswith("/rename"))
    assert told.env["INSTANCE_NAME"] == made.name
    assert told.env["OLD_INSTANCE_NAME"] == "web1"


async def test_a_system_that_does_not_take_its_name_leaves_nothing(
    cluster: SimCluster,
) -> None:
    """It would come up as the other one, with its name and its addresses."""
    volumes = {*cluster.nodes.san.volumes, *cluster.nodes.san.files}
    for node in cluster.nodes.nodes.values():
        node.machine.refuse = lambda _, command: command.argv[-1].endswith("/rename")
    said = await refused(cluster, "web1", os_type="tiny", pnode="node1")
    assert "rename" in said
    assert {*cluster.nodes.san.volumes, *cluster.nodes.san.files} == volumes


async def test_a_mirrored_one_is_copied_on_its_own_pair(tmp_path: Path) -> None:
    cluster = await pier(tmp_path / "nodes")
    name = next(
        one.name
        for one in cluster.config.all(Instance)
        if cluster.config.disks_of(one)[0].dev_type == "drbd"
    )
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name=name)
    source = cluster.config.instance(name)
    made = await cloned(cluster, name)
    assert made.primary_node == source.primary_node
    old, new = (cluster.config.disks_of(one)[0] for one in (source, made))
    assert new.nodes == old.nodes
    others = {one.name for one in cluster.config.hosts()} - {source.primary_node}
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="new")
    said = await refused(cluster, name, pnode=min(others), snode=source.primary_node)
    assert f"is on {source.primary_node}, and so is a copy" in said
    assert cluster.nodes.san.broken == []
    await cluster.stop()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"src_instance": "gone"}, "gone"),
        ({"disks": [{"size": 1}]}, "a clone has the disks of web3"),
        ({"disk_template": "plain"}, "a clone has the disks of web3"),
        ({"instance_name": "web1"}, "web1"),
        ({"rate": -1}, "rate"),
    ],
)
async def test_what_makes_no_clone_is_refused(
    cluster: SimCluster, more: dict[str, Any], says: str
) -> None:
    assert says in await refused(cluster, "web3", **more)


async def test_one_that_runs_is_not_copied(cluster: SimCluster) -> None:
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    said = await refused(cluster, "web1")
    assert "web1 is running, or should be: it can be cloned while it is down" in said
    mark = {"instance_name": "web3", "offline": True}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **mark)
    assert (await cloned(cluster, "web3")).admin_state == "up"


async def test_two_at_once_are_made_one_after_the_other(cluster: SimCluster) -> None:
    asked = {"OP_ID": CREATE, "mode": "clone", "src_instance": "web3"}
    wishes = [{**asked, "instance_name": name} for name in ("new1", "new2", "new3")]
    assert await cluster.at_once(*wishes) == []
    held = {data(cluster, cluster.config.instance(f"new{n}").disks[0]) for n in (1, 2)}
    assert held == {data(cluster, "root3")}
