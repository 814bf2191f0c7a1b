# SPDX-License-Identifier: BSD-2-Clause
"""Options of startup, shutdown, reboot and moves: each works, is refused, or warns."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from moorage.disk_templates import FACTS
from moorage.model import Change, NodeFacts, successor
from moorage.protocol import StartGuest
from moorage.storage import TEMPLATES, Can, Capabilities, Mirror
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour
from moorage.testing.state_snapshot import picture
from moorage.units import Mib

STARTUP, SHUTDOWN = "OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN"
WEB1, WEB3 = {"instance_name": "web1"}, {"instance_name": "web3"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    assert cluster.nodes.san.broken == []
    await cluster.stop()


def state(cluster: SimCluster, name: str) -> tuple[str, bool, bool]:
    """Return what an instance should be, whether its disks are, whether it runs."""
    one = cluster.config.instance(name)
    there = f"{one.primary_node} {one.uuid}" in cluster.nodes.san.guests
    return one.admin_state, one.disks_active, there


async def warned(cluster: SimCluster, op_id: str, **fields: Any) -> list[str]:
    job = await cluster.finished(await cluster.submit(op_id, **fields))
    assert job.status == "success", job.ops[0].error
    return [str(entry[3]) for entry in job.ops[0].log]


async def off(cluster: SimCluster, name: str) -> None:
    node = successor(cluster.config.node(name), 1.0, offline=True)
    await cluster.config_store.commit(Change((node,)))


async def marked(cluster: SimCluster, name: str) -> None:
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name=name, offline=True)


async def test_an_offline_mark_stays(cluster: SimCluster) -> None:
    await marked(cluster, "web3")
    before = await picture(cluster)
    for op_id in (STARTUP, SHUTDOWN, "OP_INSTANCE_REBOOT"):
        error = await cluster.refused(op_id, **WEB3)
        assert error.message == "instance web3 is marked offline"
        assert error.hint == "gnt-instance modify --online web3"
    told = await warned(cluster, SHUTDOWN, **WEB3, force=True)
    assert told == ["Warning: instance web3 is marked offline, and stays so"]
    assert (await picture(cluster)).differences(before) == []
    await cluster.run("OP_INSTANCE_SET_PARAMS", **WEB3, offline=False)
    await cluster.run(STARTUP, **WEB3)


async def test_a_guest_that_is_up_has_no_mark_to_lose(cluster: SimCluster) -> None:
    before = await picture(cluster)
    error = await cluster.refused("OP_INSTANCE_SET_PARAMS", **WEB1, offline=False)
    assert error.message.startswith("instance web1 is up, and not marked offline")
    assert (await picture(cluster)).differences(before) == []


async def test_a_stop_and_a_start_may_go_unremembered(cluster: SimCluster) -> None:
    await cluster.run(SHUTDOWN, **WEB1, no_remember=True)
    assert state(cluster, "web1") == ("up", False, False)
    await cluster.run(STARTUP, **WEB3, no_remember=True)
    assert state(cluster, "web3") == ("down", True, True)


async def test_who_wanted_the_stop_is_recorded(cluster: SimCluster) -> None:
    await cluster.run(SHUTDOWN, **WEB1, admin_state_source="user")
    assert cluster.config.instance("web1").admin_state_source == "user"
    await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", **WEB1)
    assert cluster.config.instance("web1").admin_state_source == "user"
    await cluster.run(STARTUP, **WEB1)
    assert cluster.config.instance("web1").admin_state_source == "admin"


async def test_a_start_that_is_paused_waits_for_another(cluster: SimCluster) -> None:
    uuid = cluster.config.instance("web3").uuid

    def stands() -> tuple[str, str]:
        found = cluster.nodes.san.guests[f"node3 {uuid}"]["state"]
        return found["state"], found.get("cause", "")

    await cluster.run(STARTUP, **WEB3, startup_paused=True)
    assert stands() == ("paused", "prelaunch")
    await cluster.run(STARTUP, **WEB3, startup_paused=True)
    assert stands() == ("paused", "prelaunch")
    await cluster.run(STARTUP, **WEB3)
    assert stands() == ("running", "")
    await cluster.run(STARTUP, **WEB3, startup_paused=True)
    assert stands() == ("running", "")


async def test_parameters_for_one_run(cluster: SimCluster) -> None:
    before = cluster.config.instance("web3")
    await cluster.run(STARTUP, **WEB3, beparams={"memory": 333}, hvparams={})
    uuid = cluster.config.instance("web3").uuid
    assert cluster.nodes.san.guests[f"node3 {uuid}"]["state"]["memory"] == 333
    assert cluster.config.instance("web3").beparams == before.beparams
    assert await warned(cluster, STARTUP, **WEB3, beparams={"memory": 444}) == [
        "Warning: instance web3 runs already: it keeps its parameters"
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"beparams": {"memroy": 1}}, "memroy"),
        ({"hvparams": {"nonsense": 1}}, "nonsense"),
    ],
)
async def test_what_cannot_be_asked_of_a_start(
    cluster: SimCluster, fields: dict[str, Any], sentence: str
) -> None:
    before = await picture(cluster)
    assert sentence in (await cluster.refused(STARTUP, **WEB3, **fields)).message
    assert (await picture(cluster)).differences(before) == []


async def test_a_node_that_is_off_may_be_ignored(cluster: SimCluster) -> None:
    """As Ganeti does: what should run is recorded, and nothing is done."""
    await off(cluster, "node3")
    for op_id in (STARTUP, SHUTDOWN):
        assert "offline" in (await cluster.refused(op_id, **WEB3)).message
    told = await warned(cluster, STARTUP, **WEB3, ignore_offline_nodes=True)
    assert told == [
        "Warning: the node is marked offline: the instance is recorded as up only"
    ]
    assert state(cluster, "web3") == ("up", False, False)
    told = await warned(cluster, SHUTDOWN, **WEB3, ignore_offline_nodes=True)
    assert "recorded as down only" in told[0]
    assert state(cluster, "web3") == ("down", False, False)


def as_it_runs(cluster: SimCluster, name: str) -> dict[str, Any]:
    one = cluster.config.instance(name)
    guest = cluster.nodes.san.guests[f"{one.primary_node} {one.uuid}"]
    return dict(guest["state"])


async def test_a_reboot_takes_what_was_changed(cluster: SimCluster) -> None:
    """By itself it is a hard one; a soft one is a button on the guest's machine."""
    had = as_it_runs(cluster, "web1")
    new = {"vcpus": had["vcpus"] + 2, "memory": had["memory"] + 64}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **WEB1, beparams=new)
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1, reboot_type="soft")
    assert as_it_runs(cluster, "web1") == had
    begun = len(cluster.nodes.calls)
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1)
    done = [verb for _, verb in cluster.nodes.calls[begun:] if "." in verb]
    assert done == ["instance.stop", "instance.start"]
    assert as_it_runs(cluster, "web1") == had | new | {"now": new["memory"]}


async def test_a_reboot_that_could_not_start_stops_nothing(cluster: SimCluster) -> None:
    """The guest gives back what it has; what it is to have on top must be there."""
    had = as_it_runs(cluster, "web1")
    more = {"memory": had["memory"] + 64}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **WEB1, beparams=more)
    call, free = cluster.nodes.call, [Mib(63)]

    async def nearly_full(*asked: Any) -> Any:
        told = await call(*asked)
        if isinstance(told, NodeFacts):
            told = structs.replace(told, memory_free=free[0])
        return told

    cluster.nodes.call = nearly_full  # type: ignore[method-assign]
    before = await picture(cluster)
    for how in ("hard", "full"):
        refused = await cluster.refused("OP_INSTANCE_REBOOT", **WEB1, reboot_type=how)
        assert "cannot start instance web1: memory" in refused.message
    assert (await picture(cluster)).differences(before) == []
    assert as_it_runs(cluster, "web1") == had
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1, reboot_type="soft")
    free[0] = Mib(64)
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1)
    assert as_it_runs(cluster, "web1") == had | more | {"now": more["memory"]}


async def test_nor_does_one_without_its_bridge(cluster: SimCluster) -> None:
    home = cluster.config.home(cluster.config.instance("web1"))
    machine = cluster.nodes.nodes[home.name].machine
    card = [["add", "0", {"link": "br0"}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", **WEB1, nics=card)
    had, machine.bridges = machine.bridges, ()
    before = await picture(cluster)
    for how in ("hard", "full"):
        refused = await cluster.refused("OP_INSTANCE_REBOOT", **WEB1, reboot_type=how)
        assert "has no bridge" in refused.message
    assert (await picture(cluster)).differences(before) == []
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1, reboot_type="soft")
    machine.bridges = had
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1)


@pytest.mark.parametrize("how", ["soft", "hard", "full"])
async def test_what_is_rebooted_should_run(cluster: SimCluster, how: str) -> None:
    """As in Ganeti: a guest that runs against its record is wanted from then on."""
    await cluster.run(SHUTDOWN, **WEB1)
    await cluster.run(STARTUP, **WEB1, no_remember=True)
    assert state(cluster, "web1")[0] == "down"
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1, reboot_type=how)
    assert state(cluster, "web1") == ("up", True, True)


@pytest.mark.requirement("S3-25")
async def test_nodes_are_handed_an_instances_disks_as_they_are_by_now(
    cluster: SimCluster,
) -> None:
    """Instances keep uuids alone: what a node needs of the disks comes with orders."""
    call, handed = cluster.nodes.call, []

    async def heard(node: Any, verb: Any, *more: Any) -> Any:
        if isinstance(verb, StartGuest):
            handed.append(verb.disks)
        return await call(node, verb, *more)

    cluster.nodes.call = heard  # type: ignore[method-assign]
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1)
    (first, *others) = cluster.config.disks_of(cluster.config.instance("web1"))
    await cluster.run(SHUTDOWN, **WEB1)
    gone = [["detach", first.uuid, {}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", **WEB1, disks=gone)
    await cluster.run(STARTUP, **WEB1)
    ids = [[(one.uuid, one.logical_id) for one in disks] for disks in handed]
    now = [(one.uuid, one.logical_id) for one in others]
    assert ids == [[(first.uuid, first.logical_id), *now], now]


async def test_a_full_reboot_takes_the_disks_too(cluster: SimCluster) -> None:
    before = await picture(cluster)
    begun = len(cluster.nodes.calls)
    await cluster.run("OP_INSTANCE_REBOOT", **WEB1, reboot_type="full")
    done = [verb for _, verb in cluster.nodes.calls[begun:] if "." in verb]
    assert done == [
        "instance.stop",
        *["disk.detach"] * 2,
        *["disk.attach"] * 2,
        "instance.start",
    ]
    assert (await picture(cluster)).differences(before) == []


# -- what keeps an instance where it is ------------------------------------------------


@pytest.mark.requirement("S0-10")
async def test_nothing_but_the_work_itself_is_done_for_an_ext_disk(
    cluster: SimCluster,
) -> None:
    """Every step of a life is listed: a wait for copies would be one more."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    cluster.engine._asker._sleep = sleep
    begun = len(cluster.nodes.calls)
    new = {"instance_name": "w", "pnode": "node1", "disk_template": "ext"}
    disks = [{"size": 64, "provider": "san"}]
    await cluster.run("OP_INSTANCE_CREATE", **new, disks=disks)
    await cluster.run("OP_INSTANCE_GROW_DISK", instance_name="w", disk=0, amount=64)
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="w")
    await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", instance_name="w")
    done = [verb for _, verb in cluster.nodes.calls[begun:] if "." in verb]
    assert done == [
        *("disk.verify", "disk.create", "disk.attach", "disk.setinfo"),
        "instance.start",
        *("disk.grow", "instance.resize"),
        *("instance.stop", "disk.detach"),
        "disk.attach",
    ]
    assert slept == []


MOVES = {"OP_INSTANCE_MIGRATE": "migrations", "OP_INSTANCE_FAILOVER": "failover"}


@pytest.mark.requirement("S0-09")
@pytest.mark.parametrize("move", MOVES)
async def test_an_instance_moves_if_its_disks_are_mirrored_by_anybody(
    cluster: SimCluster, move: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Ganeti's words, where they are not; the union counts, not one half of it."""
    file = {"size": 64, "dev_type": "file"}
    new = {"instance_name": "w", "pnode": "node1", "disks": [file]}
    await cluster.run("OP_INSTANCE_CREATE", **new)
    there = {"instance_name": "w", "target_node": "node2"}
    before = await picture(cluster)
    said = (await cluster.refused(move, **there)).message
    assert f"Instance's disk layout 'file' does not allow {MOVES[move]}" in said
    assert (await picture(cluster)).differences(before) == []
    # What drbd is: data on two nodes, which the cluster itself mirrors.
    facts = FACTS["file"]._replace(mirror=Mirror.INTERNAL)
    able = Capabilities(facts, can=Can.CREATE)
    monkeypatch.setattr(TEMPLATES["file"], "capabilities", able)
    monkeypatch.setattr(TEMPLATES["file"], "check_made", lambda _disk: None)
    (uuid,) = cluster.config.instance("w").disks
    pair = successor(cluster.config.disk(uuid), 1.0, nodes=("node1", "node2"))
    await cluster.config_store.commit(Change((pair,)))
    files = cluster.nodes.san.files
    files[f"node2:{pair.volume}"] = dict(files[f"node1:{pair.volume}"])
    await cluster.run(move, **there)
    assert cluster.config.instance("w").primary_node == "node2"


# -- a target without the storage ------------------------------------------------------


@pytest.mark.parametrize(
    "move",
    [
        "OP_INSTANCE_MIGRATE",
        "OP_INSTANCE_FAILOVER",
    ],
)
async def test_a_guest_stays_up_if_the_target_has_not_mounted_its_files(
    cluster: SimCluster, move: str
) -> None:
    cluster.nodes.san.unmounted["node2"] = "/shared"
    before = await picture(cluster)
    begun = len(cluster.nodes.calls)
    error = await cluster.refused(move, **WEB1, target_node="node2")
    path = cluster.config.disk("root1").volume
    assert error.message == f"node node2 has no file {path}"
    assert not [verb for _, verb in cluster.nodes.calls[begun:] if "." in verb]
    assert (await picture(cluster)).differences(before) == []
    await cluster.run(move, **WEB1)
    assert cluster.config.instance("web1").primary_node == "node3"


async def test_a_file_is_not_attached_where_it_is_not(cluster: SimCluster) -> None:
    new = {"name": "f", "disk_template": "sharedfile", "size": 64}
    await cluster.run("OP_DISK_ADD", **new)
    cluster.nodes.san.unmounted["node2"] = "/shared"
    attach = {"disk": "f", "instance_name": "web2"}
    error = await cluster.refused("OP_DISK_ATTACH", **attach)
    assert "node node2 has no file" in error.message
    volume = cluster.config.disk("f").volume
    cluster.nodes.san.unmounted.clear()
    cluster.nodes.san.files[volume] = {"size": 1024, "data": ""}
    error = await cluster.refused("OP_DISK_ATTACH", **attach)
    assert "has 0 MiB on node node2, and its record says 64 MiB" in error.message


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.requirement("S0-16")
async def test_a_guest_stays_where_the_target_lacks_its_provider(
    cluster: SimCluster, move: str
) -> None:
    """The part of moves and attaches; birth and allocation have tests of their own."""
    machine = cluster.nodes.nodes["node2"].machine
    machine.installed = [one for one in machine.installed if one.name != "san"]
    before = await picture(cluster)
    begun = len(cluster.nodes.calls)
    error = await cluster.refused(move, **WEB1, target_node="node2")
    assert "node node2 has no ExtStorage provider 'san'" in error.message
    attach = {"disk": "spare", "instance_name": "web2"}
    error = await cluster.refused("OP_DISK_ATTACH", **attach)
    assert "node node2 has no ExtStorage provider 'san'" in error.message
    assert not [verb for _, verb in cluster.nodes.calls[begun:] if "." in verb]
    assert (await picture(cluster)).differences(before) == []
    await cluster.run(move, **WEB1)
    assert cluster.config.instance("web1").primary_node == "node3"
