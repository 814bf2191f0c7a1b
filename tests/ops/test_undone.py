# SPDX-License-Identifier: BSD-2-Clause
"""What an undo leaves, what a stop that fails leaves, and how both are put right."""

from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from moorage.model import Node
from moorage.storage import Command
from moorage.testing.cluster import Crash, SimCluster, _pass
from moorage.testing.scenarios import harbour
from moorage.testing.state_snapshot import picture

STARTUP, SHUTDOWN = "OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN"
MIGRATE, FAILOVER = "OP_INSTANCE_MIGRATE", "OP_INSTANCE_FAILOVER"
ACTIVATE, DEACTIVATE = "OP_INSTANCE_ACTIVATE_DISKS", "OP_INSTANCE_DEACTIVATE_DISKS"
REMOVE = "OP_INSTANCE_REMOVE"
WEB1, WEB3 = {"instance_name": "web1"}, {"instance_name": "web3"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    assert cluster.nodes.san.broken == []
    await cluster.stop()


def failing(cluster: SimCluster, node: str, *scripts: str) -> None:
    """Let some scripts of providers fail on a node; none to let them work again."""

    def refuse(_node: str, command: Command) -> bool:
        return PurePosixPath(command.argv[0]).name in scripts

    cluster.nodes.nodes[node].machine.refuse = refuse


async def ended(cluster: SimCluster, op_id: str, **fields: Any) -> tuple[str, str]:
    """Run a job; return its status and its log as one text."""
    job = await cluster.finished(await cluster.submit(op_id, **fields))
    return job.status, "\n".join(str(entry[3]) for entry in job.ops[0].log)


async def verified(cluster: SimCluster) -> list[dict[str, str]]:
    return (await cluster.run("OP_CLUSTER_VERIFY"))["errors"]


def guests(cluster: SimCluster, name: str) -> list[str]:
    uuid = cluster.config.instance(name).uuid
    return [key.split()[0] for key in cluster.nodes.san.guests if key.endswith(uuid)]


# -- what moves while it is stopped ----------------------------------------------------


@pytest.mark.parametrize(
    ("op_id", "fields"), [(FAILOVER, {}), (MIGRATE, {"allow_failover": True})]
)
async def test_a_stopped_instance_leaves_no_active_disks_behind(
    cluster: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    await cluster.run(SHUTDOWN, **WEB1)
    await cluster.run(ACTIVATE, **WEB1)
    home = cluster.config.instance("web1").primary_node
    target = next(n.name for n in cluster.config.all(Node) if n.uuid != home)
    await cluster.run(op_id, **WEB1, target_node=target, **fields)
    assert (await picture(cluster)).misplaced == []
    assert not cluster.config.instance("web1").disks_active
    assert await verified(cluster) == []


# -- a stop of storage that fails ------------------------------------------------------


@pytest.mark.parametrize("force", [False, True])
async def test_a_guest_that_was_stopped_is_not_started_by_a_failing_detach(
    cluster: SimCluster, force: bool
) -> None:
    """The node holds the disk; verify says so; the next start takes it up."""
    failing(cluster, "node1", "detach")
    status, log = await ended(cluster, SHUTDOWN, **WEB1, force=force)
    assert (status, guests(cluster, "web1")) == ("success", [])
    assert "Warning: detach disk data1 on node1: " in log
    web1, data1 = cluster.config.instance("web1"), cluster.config.disk("data1")
    assert (web1.admin_state, web1.disks_active) == ("down", False)
    assert data1.quarantine is None
    (told,) = await verified(cluster)
    assert "node node1 still holds it: the disks of its instance" in told["message"]
    assert told["hint"].endswith("gnt-instance deactivate-disks web1")
    await cluster.run(STARTUP, **WEB1)
    assert await verified(cluster) == []
    failing(cluster, "node1")
    await cluster.run(SHUTDOWN, **WEB1)
    assert await verified(cluster) == []


async def test_the_hint_for_a_disk_that_is_still_held_works(
    cluster: SimCluster,
) -> None:
    failing(cluster, "node1", "detach")
    await cluster.run(SHUTDOWN, **WEB1)
    status, log = await ended(cluster, DEACTIVATE, **WEB1)
    assert status == "success"
    assert "Warning" in log
    failing(cluster, "node1")
    await cluster.run(DEACTIVATE, **WEB1)
    assert await verified(cluster) == []


async def test_a_disk_that_nobody_has_and_a_node_holds_is_detached_there(
    cluster: SimCluster,
) -> None:
    failing(cluster, "node1", "detach")
    await cluster.run(SHUTDOWN, **WEB1)
    failing(cluster, "node1")
    await cluster.run("OP_DISK_DETACH", disk="data1")
    (told,) = await verified(cluster)
    data1 = cluster.config.disk("data1")
    assert told["message"].endswith("it is attached to no instance")
    assert told["hint"].endswith(f"gnt-disk detach {data1.uuid}")
    await cluster.run("OP_DISK_DETACH", disk=data1.uuid)
    assert await verified(cluster) == []
    error = await cluster.refused("OP_DISK_DETACH", disk="data1")
    assert error.message == "disk data1 is not attached to any instance"


async def test_an_instance_is_removed_without_its_guest_starting_again(
    cluster: SimCluster,
) -> None:
    failing(cluster, "node1", "detach")
    starts = [("node1", "instance.start")]
    begun = len(cluster.nodes.calls)
    status, log = await ended(cluster, REMOVE, **WEB1)
    assert status == "success"
    assert "Warning: detach disk data1 on node1: " in log
    assert not set(starts) & set(cluster.nodes.calls[begun:])
    assert (await picture(cluster)).orphans == set()


@pytest.mark.parametrize("op_id", [SHUTDOWN, REMOVE])
async def test_a_guest_that_cannot_be_stopped_is_left_as_it_was(
    cluster: SimCluster, op_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hypervisor = cluster.nodes.nodes["node1"].agent._context.hypervisors["kvm"]

    async def stuck(uuid: str, timeout: float) -> None:  # noqa: ASYNC109
        raise OSError(f"{uuid} {timeout}")

    monkeypatch.setattr(hypervisor, "stop", stuck)
    before = await picture(cluster)
    status, _ = await ended(cluster, op_id, **WEB1)
    assert status == "error"
    assert (await picture(cluster)).differences(before) == []


# -- undone moves ----------------------------------------------------------------------


@pytest.mark.parametrize("move", [FAILOVER, MIGRATE])
@pytest.mark.parametrize("script", ["attach", "open"])
async def test_after_an_undone_move_verify_is_content(
    cluster: SimCluster, move: str, script: str
) -> None:
    before = await picture(cluster)
    failing(cluster, "node2", script)
    status, _ = await ended(cluster, move, **WEB1, target_node="node2")
    assert status == "error"
    assert (await picture(cluster)).differences(before) == []
    assert await verified(cluster) == []
    failing(cluster, "node2")
    await cluster.run(move, **WEB1, target_node="node2")
    assert await verified(cluster) == []


async def test_a_disk_held_by_an_older_epoch_has_a_hint_that_works(
    cluster: SimCluster,
) -> None:
    """Such as an earlier version left behind its undone failovers."""
    facts = cluster.nodes.nodes["node1"].agent._context.attachments
    data1 = cluster.config.disk("data1")
    where = facts.get(data1.uuid)
    assert where
    path = facts._directory / data1.uuid
    path.write_text(path.read_text().replace('"epoch":1', '"epoch":0'))
    (told,) = await verified(cluster)
    assert "by epoch 0, and it is in epoch 1" in told["message"]
    assert told["hint"].endswith("gnt-instance activate-disks web1")
    await cluster.run(ACTIVATE, **WEB1)
    assert await verified(cluster) == []


async def test_what_a_migration_left_on_its_source_is_cleaned_up(
    cluster: SimCluster,
) -> None:
    failing(cluster, "node1", "detach")
    status, _ = await ended(cluster, MIGRATE, **WEB1, target_node="node2")
    assert status == "success"
    (told,) = await verified(cluster)
    assert "its instance web1 is on node node2" in told["message"]
    assert told["hint"].endswith("gnt-instance migrate --cleanup web1")
    failing(cluster, "node1")
    await cluster.run(MIGRATE, **WEB1, cleanup=True)
    assert await verified(cluster) == []


# -- what was attached stays attached --------------------------------------------------


async def crashed(cluster: SimCluster, point: str, op_id: str, **fields: Any) -> None:
    """Let the master die at a point of a request, and another one take over."""

    async def die(name: str) -> None:
        if name == point:
            cluster.die()
            raise Crash

    cluster.extra_point = die
    number = await cluster.submit(op_id, **fields)
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    cluster.extra_point = _pass
    await cluster.boot()
    job = await cluster.finished(number)
    assert job.status == "error"


@pytest.mark.parametrize(
    "point", ["after attach disk root1 on node1", "during attach disk data1 on node1"]
)
async def test_activating_the_disks_of_a_running_guest_takes_nothing_away(
    cluster: SimCluster, point: str
) -> None:
    before = await picture(cluster)
    await crashed(cluster, point, ACTIVATE, **WEB1)
    after = await picture(cluster)
    assert after.differences(before) == []
    assert after.quarantined == set()
    await cluster.run(SHUTDOWN, **WEB1)


async def test_starting_with_active_disks_leaves_them_active(
    cluster: SimCluster,
) -> None:
    await cluster.run(ACTIVATE, **WEB3)
    before = await picture(cluster)
    for point in (
        "during attach disk root3 on node3",
        "before start web3 on node3",
        "during start web3 on node3",
    ):
        await crashed(cluster, point, STARTUP, **WEB3)
        assert (await picture(cluster)).differences(before) == []
    assert await verified(cluster) == []


# -- where else a guest runs -----------------------------------------------------------


async def strayed(cluster: SimCluster) -> None:
    """Let web3 run on node1, though its record says that it is down on node3."""
    await cluster.run(STARTUP, **WEB3)
    guests_of = cluster.nodes.san.guests
    uuid = cluster.config.instance("web3").uuid
    await cluster.run(SHUTDOWN, **WEB3)
    state = {"uuid": uuid, "name": "web3", "state": "running", "memory": 128}
    root3 = cluster.config.disk("root3").uuid
    guests_of[f"node1 {uuid}"] = {"state": state | {"vcpus": 1, "disks": [root3]}}


@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        (STARTUP, {}),
        ("OP_INSTANCE_REBOOT", {}),
        (ACTIVATE, {}),
        (FAILOVER, {"target_node": "node2"}),
    ],
)
async def test_nothing_starts_a_guest_that_runs_elsewhere(
    cluster: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    await strayed(cluster)
    begun = len(cluster.nodes.calls)
    error = await cluster.refused(op_id, **WEB3, **fields)
    assert error.message.startswith(
        "instance web3 runs on node node1, and should be on node3"
    )
    assert not [verb for _, verb in cluster.nodes.calls[begun:] if "." in verb]
    assert error.hint == "gnt-instance migrate --cleanup web3"
    await cluster.run(MIGRATE, **WEB3, cleanup=True)
    assert cluster.config.instance("web3").primary_node == "node1"


async def test_a_silent_node_keeps_nobody_down(cluster: SimCluster) -> None:
    cluster.nodes.nodes["node2"].lose_power()
    await cluster.run(STARTUP, **WEB3)


# -- quarantine, and the way out of it -------------------------------------------------


async def test_an_instance_with_a_disk_in_quarantine_can_be_stopped_and_repaired(
    cluster: SimCluster,
) -> None:
    for node in ("node1", "node2", "node3"):
        failing(cluster, node, "attach")
    assert (await ended(cluster, FAILOVER, **WEB1))[0] == "error"
    disks = cluster.config.disks_of(cluster.config.instance("web1"))
    suspects = [disk for disk in disks if disk.quarantine]
    assert suspects
    assert not any("\n" in (disk.quarantine or "") for disk in suspects)
    for node in ("node1", "node2", "node3"):
        failing(cluster, node)
    error = await cluster.refused(STARTUP, **WEB1)
    assert f"gnt-disk modify --lift-quarantine {suspects[0].label}" in error.hint
    await cluster.run(SHUTDOWN, **WEB1)
    await cluster.run(DEACTIVATE, **WEB1)
    for disk in suspects:
        fields = {"disk": disk.uuid, "lift_quarantine": True}
        await cluster.run("OP_DISK_SET_PARAMS", **fields)
    await cluster.run(STARTUP, **WEB1)
    assert await verified(cluster) == []


async def test_a_disk_that_storage_never_lets_go_of_is_forgotten_by_its_node(
    cluster: SimCluster,
) -> None:
    failing(cluster, "node1", "detach")
    await cluster.run(SHUTDOWN, **WEB1)
    instance = cluster.config.instance("web1")
    held = [
        disk for disk in cluster.config.disks_of(instance) if disk.dev_type == "ext"
    ]
    assert await verified(cluster)
    for disk in held:
        status, said = await ended(
            cluster, "OP_DISK_FORGET", disk=disk.uuid, why="the volume is gone"
        )
        assert status == "success"
        assert "node node1 had it attached" in said
    assert await verified(cluster) == []
    failing(cluster, "node1")
    await cluster.run(STARTUP, **WEB1)


async def test_a_node_that_rebooted_gives_no_disk_back_to_a_guest_that_is_gone(
    cluster: SimCluster,
) -> None:
    """A detach fails, and is taken back on a node that has lost its guests meanwhile.

    The disk stays the instance's, sound; the next start takes it up.
    """
    failing(cluster, "node1", "detach")

    async def reboot(name: str) -> None:
        if name == "before undoing unplug disk data1 from web1 on node1":
            cluster.nodes.nodes["node1"].lose_power()
            cluster.nodes.nodes["node1"].boot()

    cluster.extra_point = reboot
    status, log = await ended(cluster, "OP_DISK_DETACH", disk="data1")
    cluster.extra_point = _pass
    assert (status, guests(cluster, "web1")) == ("error", [])
    assert "quarantined" not in log
    data1 = cluster.config.disk("data1")
    assert data1.quarantine is None
    assert data1.uuid in cluster.config.instance("web1").disks
    failing(cluster, "node1")
    await cluster.run(STARTUP, **WEB1)
    assert guests(cluster, "web1") == ["node1"]
    assert await verified(cluster) == []


# -- cards -----------------------------------------------------------------------------


async def test_a_card_that_was_unplugged_is_plugged_again(cluster: SimCluster) -> None:
    """The master dies between the two: the guest has what is on record again."""

    async def die(name: str) -> None:
        if name.startswith("before change the network cards of web2"):
            cluster.extra_point = _pass
            cluster.die()
            raise Crash(name)

    cluster.extra_point = die
    gone = {"instance_name": "web2", "nics": [["remove", "0", {}]]}
    number = await cluster.submit("OP_INSTANCE_SET_PARAMS", **gone)
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    await cluster.boot()
    assert (await cluster.finished(number)).status == "error"
    (nic,) = cluster.config.instance("web2").nics
    (guest,) = await cluster.nodes.nodes["node2"].hypervisor.guests()
    assert set(guest.cards or {}) == {nic.uuid}
