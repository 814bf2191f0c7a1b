# SPDX-License-Identifier: BSD-2-Clause
"""A second copy that missed what was written last never becomes the first unasked."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mirrored import mirrored
from msgspec.structs import replace

from moorage.jobs import View
from moorage.model import MirrorState, Node, pair_of
from moorage.ops.volumes import behind, pairs
from moorage.testing.cluster import SimCluster

OLD, NEW = "old", "new"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Instance *web* runs on node2, with its second copy on node3; both have `OLD`."""
    cluster = await mirrored(tmp_path, "root", OLD)
    yield cluster
    await cluster.stop()


def on(cluster: SimCluster, node: str) -> str:
    """Return what the copy on a node has."""
    volume = cluster.config.disk("root").volume
    return str(cluster.nodes.san.logical[f"{node} xenvg/{volume}"]["data"])


async def mark(cluster: SimCluster, node: str, *, offline: bool) -> None:
    await cluster.run("OP_NODE_SET_PARAMS", node_name=node, offline=offline)


async def lost(cluster: SimCluster, node: str) -> None:
    """Let a node lose its power, and say so."""
    cluster.nodes.nodes[node].lose_power()
    await mark(cluster, node, offline=True)


async def back(cluster: SimCluster, node: str) -> None:
    cluster.nodes.nodes[node].boot()
    await mark(cluster, node, offline=False)


def cut(cluster: SimCluster) -> None:
    """Cut the line between the two copies, and nothing else."""
    cluster.nodes.san.mirrors["node3 0"] |= {"mine": "", "other": ""}


async def on_web(cluster: SimCluster, verb: str, **more: Any) -> Any:
    return await cluster.run(f"OP_INSTANCE_{verb}", instance_name="web", **more)


async def not_gone_to(cluster: SimCluster) -> None:
    """Check that a failover to the old copy is refused, unless it is insisted on."""
    refused = await cluster.refused("OP_INSTANCE_FAILOVER", instance_name="web")
    assert "the copy of disk root on node node3" in refused.message
    assert "--ignore-consistency" in refused.hint
    assert cluster.config.instance("web").primary_node == "node2"
    await on_web(cluster, "FAILOVER", ignore_consistency=True)
    assert cluster.config.instance("web").primary_node == "node3"


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "unnoticed"])
async def test_the_second_node_was_off_while_the_first_one_wrote(
    cluster: SimCluster, marked: bool
) -> None:
    cluster.nodes.nodes["node3"].lose_power()
    if marked:
        await mark(cluster, "node3", offline=True)
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await lost(cluster, "node2")
    cluster.nodes.nodes["node3"].boot()
    if marked:
        await mark(cluster, "node3", offline=False)
    assert on(cluster, "node3") == OLD
    await not_gone_to(cluster)


async def test_the_guest_was_shut_down_before_the_second_node_came_back(
    cluster: SimCluster,
) -> None:
    await lost(cluster, "node3")
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await on_web(cluster, "SHUTDOWN")
    await lost(cluster, "node2")
    await back(cluster, "node3")
    await not_gone_to(cluster)
    await on_web(cluster, "STARTUP")


async def test_the_guest_was_started_without_its_second_copy(
    cluster: SimCluster,
) -> None:
    await on_web(cluster, "SHUTDOWN")
    await lost(cluster, "node3")
    await on_web(cluster, "STARTUP")
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await on_web(cluster, "SHUTDOWN")
    await back(cluster, "node3")
    await lost(cluster, "node2")
    await not_gone_to(cluster)


@pytest.mark.parametrize("running", [True, False], ids=["running", "down"])
async def test_what_was_equal_is_gone_to(cluster: SimCluster, running: bool) -> None:
    """Nothing is to be insisted on where the second copy had all that was written."""
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    if not running:
        await on_web(cluster, "SHUTDOWN")
    await lost(cluster, "node2")
    await on_web(cluster, "FAILOVER")
    if not running:
        await on_web(cluster, "STARTUP")
    assert on(cluster, "node3") == NEW


async def looked_after(cluster: SimCluster) -> dict[str, Any]:
    """Let the watcher's look at the disks, and what it asks for, come to an end."""
    job = await cluster.submit("OP_CLUSTER_VERIFY_DISKS")
    told: dict[str, Any] = (await cluster.finished(job)).ops[0].result
    for taken, number in told["jobs"]:
        assert taken
        assert (await cluster.finished(number)).status == "success"
    return told


async def test_a_line_that_was_cut_is_noticed(cluster: SimCluster) -> None:
    """The watcher's look connects the copies, and remembers that they differed."""
    cut(cluster)
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    told = await looked_after(cluster)
    assert told["degraded"] == [
        ["web", "root", "node node2 says WFConnection, UpToDate/DUnknown"]
    ]
    assert cluster.config.disk("root").behind == "node3"
    assert on(cluster, "node3") == NEW
    assert (await looked_after(cluster))["names"] == ["web"]
    assert cluster.config.disk("root").behind is None
    assert (await looked_after(cluster))["names"] == []


async def test_a_line_that_stays_cut_keeps_the_old_copy_from_its_turn(
    cluster: SimCluster,
) -> None:
    """DRBD calls the old copy good: nobody but the writer knows better."""
    cut(cluster)
    await looked_after(cluster)
    cut(cluster)
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await lost(cluster, "node2")
    assert "ds:UpToDate/DUnknown" in cluster.nodes.san.drbd.status("node3")
    await not_gone_to(cluster)


async def test_a_line_that_breaks_while_the_guest_shuts_down_stops_its_failover(
    cluster: SimCluster,
) -> None:
    """What it wrote last, on its way down, is on the first copy alone."""

    async def breaks(name: str) -> None:
        if name.startswith("before stop web"):
            cut(cluster)
            cluster.nodes.san.drbd.write("node2", 0, NEW)

    cluster.extra_point = breaks
    refused = await cluster.refused("OP_INSTANCE_FAILOVER", instance_name="web")
    assert "the copies of disk root do not become the same" in refused.message
    web = cluster.config.instance("web")
    assert (web.primary_node, web.admin_state) == ("node2", "up")
    assert list(cluster.nodes.san.guests) == [f"node2 {web.uuid}"]
    again = await cluster.refused("OP_INSTANCE_FAILOVER", instance_name="web")
    assert "--ignore-consistency" in again.hint


async def test_a_guest_that_runs_is_looked_after_while_its_second_node_is_off(
    cluster: SimCluster,
) -> None:
    cluster.nodes.nodes["node3"].lose_power()
    await looked_after(cluster)
    assert cluster.config.disk("root").behind == "node3"
    await mark(cluster, "node3", offline=True)
    assert (await looked_after(cluster))["names"] == []


async def test_an_old_copy_is_not_started_alone(cluster: SimCluster) -> None:
    """The instance is there by force; its guest waits for the copy that is newer."""
    await on_web(cluster, "SHUTDOWN")
    await lost(cluster, "node3")
    await on_web(cluster, "STARTUP")
    cluster.nodes.san.drbd.write("node2", 0, NEW)
    await on_web(cluster, "SHUTDOWN")
    await cluster.run("OP_DISK_DETACH", disk="root")
    await back(cluster, "node3")
    new = {"disk_template": "diskless", "disks": [], "pnode": "node3"}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="other", **new)
    await lost(cluster, "node2")
    refused = await cluster.refused(
        "OP_DISK_ATTACH", disk="root", instance_name="other"
    )
    assert "missed what node node2 wrote without it" in refused.message
    clone = await cluster.refused(
        "OP_DISK_CLONE", disk="root", new_name="copy", disk_template="sharedfile"
    )
    assert "missed what was written last" in clone.message
    await back(cluster, "node2")
    await cluster.run("OP_DISK_ATTACH", disk="root", instance_name="other")
    assert on(cluster, "node3") == NEW


async def test_a_start_that_cannot_meet_the_second_copy_is_for_somebody_to_decide(
    cluster: SimCluster,
) -> None:
    await on_web(cluster, "SHUTDOWN")
    san = cluster.nodes.san
    beside = f"node3 xenvg/{cluster.config.disk('root').volume}"
    meta = beside.replace("_data", "_meta")
    san.logical[meta] |= {"md": {"gi": "other", "past": ["first"], "good": True}}
    refused = await cluster.refused("OP_INSTANCE_STARTUP", instance_name="web")
    assert "node node2 and node node3 do not connect" in refused.message
    assert "startup --force" in refused.hint
    await on_web(cluster, "STARTUP", force=True)
    assert cluster.config.disk("root").behind == "node3"


async def test_while_the_writer_is_there_its_copy_is_the_way_out(
    cluster: SimCluster,
) -> None:
    """All lost their power: nothing is to be insisted on where both nodes are back."""
    for name in ("node2", "node3"):
        cluster.nodes.nodes[name].lose_power()
    for name in ("node2", "node3"):
        cluster.nodes.nodes[name].boot()
    refused = await cluster.refused("OP_INSTANCE_FAILOVER", instance_name="web")
    assert "gnt-instance activate-disks --wait-for-sync web" in refused.hint
    await on_web(cluster, "ACTIVATE_DISKS", wait_for_sync=True)
    await on_web(cluster, "FAILOVER")
    assert cluster.config.instance("web").primary_node == "node3"
    await on_web(cluster, "MIGRATE")


@pytest.mark.parametrize(
    ("mine", "other", "connection", "found"),
    [
        ("UpToDate", "UpToDate", "Connected", None),
        ("UpToDate", "DUnknown", "WFConnection", "node3"),
        ("UpToDate", "UpToDate", "StandAlone", "node3"),
        ("Diskless", "UpToDate", "Connected", "node2"),
        ("Inconsistent", "DUnknown", "WFConnection", "as it was"),
    ],
)
async def test_what_the_writer_says_tells_whose_copy_is_behind(
    cluster: SimCluster, mine: str, other: str, connection: str, found: str | None
) -> None:
    """Its own is, where its device failed and the other copy serves the guest."""
    disk = replace(cluster.config.disk("root"), behind="as it was")
    pair, node = pair_of(disk), cluster.config.node("node2")
    assert pair
    names = {one.uuid: one.name for one in cluster.config.all(Node)}
    said = MirrorState(
        minor=pair.minor(node.uuid), connection=connection, disk=mine, peer_disk=other
    )
    view = View(cluster.config, {pairs.mirrors_on(node.uuid): [said]})
    lags = behind.known(view, disk, node)
    assert names.get(lags or "", lags) == found
    tasks = [*behind.recorded(view, [disk], node)]
    assert len(tasks) == (found != disk.behind)
