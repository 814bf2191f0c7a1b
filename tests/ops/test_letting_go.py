# SPDX-License-Identifier: BSD-2-Clause
"""The end of disks and instances: on the right node, or on nobody's any more."""

from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path, PurePosixPath

import pytest

from moorage.errors import BadInput, CommandFailed, Failed, WrongState
from moorage.jobs import Job
from moorage.model import Disk, Instance
from moorage.storage import Command, Output
from moorage.testing.cluster import Crash, SimCluster
from moorage.testing.machine import provider

NEW = {"disk_template": "ext", "provider": "vault", "size": 64, "name": "data"}
REMOVE = "OP_INSTANCE_REMOVE"


class Vault:
    """A provider whose volumes are on the node that made them, and on no other.

    As LVM and ZFS providers are: elsewhere `attach` fails, and `remove` is content.

    Attributes
    ----------
    volumes
        Node by volume.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self.volumes: dict[str, str] = {}
        self._answer: Callable[[str, Command], Output] = cluster.nodes.san.answer
        cluster.nodes.san.answer = self.answer  # type: ignore[method-assign]
        for node in cluster.nodes.nodes.values():
            node.machine.installed.append(provider("vault"))

    def answer(self, node: str, command: Command) -> Output:
        script = PurePosixPath(command.argv[0])
        if command.argv[:2] == ("test", "-b"):
            return Output()
        if script.parent.name != "vault":
            return self._answer(node, command)
        volume = command.env["VOL_NAME"]
        here = self.volumes.get(volume) == node
        if script.name == "create":
            self.volumes.setdefault(volume, node)
        elif script.name == "remove":
            if here:
                del self.volumes[volume]
        elif script.name not in ("detach", "verify") and not here:
            raise CommandFailed(f"there is no volume {volume}")
        return Output(f"/dev/{volume}\n" if script.name == "attach" else "")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


@pytest.fixture
def vault(cluster: SimCluster) -> Vault:
    return Vault(cluster)


async def off(cluster: SimCluster, node: str) -> None:
    """Let a node die, and say so."""
    cluster.nodes.nodes[node].lose_power()
    fields = {"node_name": node, "offline": True}
    await cluster.run("OP_NODE_SET_PARAMS", **fields)


def last(cluster: SimCluster) -> Job:
    return cluster.engine.job(max(cluster.engine.jobs))


def said(job: Job) -> str:
    return "\n".join(str(entry[3]) for op in job.ops for entry in op.log)


# -- the node that had it last ---------------------------------------------------------


async def test_a_local_volume_is_removed_where_it_was_made(
    cluster: SimCluster, vault: Vault
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW, node="node3")
    await cluster.run("OP_DISK_GROW", disk="data", amount=64)
    assert vault.volumes == {cluster.config.disk("data").volume: "node3"}
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert vault.volumes == {}
    assert not cluster.config.knows(Disk, "data")


async def test_a_local_volume_is_removed_where_it_was_used_last(
    cluster: SimCluster, vault: Vault
) -> None:
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="ext",
        disks=[{"size": 64, "provider": "vault", "name": "data"}],
        pnode="node2",
    )
    await cluster.run("OP_DISK_DETACH", disk="data")
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert vault.volumes == {}


async def with_data(cluster: SimCluster, **more: object) -> None:
    """Make an instance on node2 with a volume that only node2 sees."""
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="ext",
        disks=[{"size": 64, "provider": "vault", "name": "data"}],
        pnode="node2",
        **more,
    )


async def move_down(cluster: SimCluster) -> None:
    """Let an instance that is down go to node3, which does not look at its disks."""
    fields = {"instance_name": "web", "target_node": "node3"}
    await cluster.run("OP_INSTANCE_FAILOVER", **fields)


@pytest.mark.parametrize("how", ["disk", "instance", "modify"])
async def test_a_local_volume_is_removed_where_it_is_after_a_move_without_it(
    cluster: SimCluster, vault: Vault, how: str
) -> None:
    await with_data(cluster, start=False)
    await move_down(cluster)
    if how == "disk":
        await cluster.run("OP_DISK_DETACH", disk="data")
        await cluster.run("OP_DISK_REMOVE", disk="data")
    elif how == "instance":
        await cluster.run(REMOVE, instance_name="web")
    else:
        mods = {"disks": [["remove", "data", {}]]}
        await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web", **mods)
    assert vault.volumes == {}
    assert not cluster.config.knows(Disk, "data")


async def test_a_node_that_was_given_a_disk_and_never_saw_it_is_not_asked(
    cluster: SimCluster, vault: Vault
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW, node="node3")
    fields = {"disk_template": "diskless", "pnode": "node2", "start": False}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="web", **fields)
    await cluster.run("OP_DISK_ATTACH", disk="data", instance_name="web")
    await cluster.run("OP_DISK_DETACH", disk="data")
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert vault.volumes == {}


async def test_a_volume_that_people_moved_is_removed_where_its_guest_ran(
    cluster: SimCluster, vault: Vault
) -> None:
    await with_data(cluster, start=False)
    await move_down(cluster)
    vault.volumes = dict.fromkeys(vault.volumes, "node3")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await cluster.run("OP_DISK_DETACH", disk="data")
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert vault.volumes == {}


async def test_what_its_own_node_must_remove_waits_for_it(
    cluster: SimCluster, vault: Vault
) -> None:
    await with_data(cluster, start=False)
    await move_down(cluster)
    await off(cluster, "node2")
    await cluster.refused(REMOVE, instance_name="web")
    assert list(vault.volumes.values()) == ["node2"]
    disk = cluster.config.disk("data")
    assert disk.quarantine
    assert disk.last_node == "node2"


@pytest.mark.parametrize("how", ["silent", "offline"])
async def test_another_node_that_finds_nothing_has_removed_nothing(
    cluster: SimCluster, vault: Vault, how: str
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW, node="node3")
    if how == "offline":
        await off(cluster, "node3")
    else:
        cluster.nodes.nodes["node3"].powered = False
    error = await cluster.refused("OP_DISK_REMOVE", disk="data")
    assert isinstance(error, WrongState)
    assert str(error).startswith("node node1 does not see the volume of disk data")
    assert error.hint.endswith("gnt-disk forget --reason WHY data")
    disk = cluster.config.disk("data")
    assert (disk.quarantine, disk.last_node) == (None, "node3")
    assert vault.volumes == {disk.volume: "node3"}


async def test_a_removal_elsewhere_that_a_crash_interrupts_is_finished(
    cluster: SimCluster,
) -> None:
    """The node that made the disk is silent; the master dies at each point in turn."""
    maker = cluster.nodes.nodes["node2"]
    fields = {"disk_template": "ext", "provider": "san", "size": 64, "node": "node2"}
    for point in count():
        maker.powered = True
        await cluster.run("OP_DISK_ADD", name="data", **fields)
        maker.powered = False
        cluster.crash_at = len(cluster.points) + point
        job = await cluster.submit("OP_DISK_REMOVE", disk="data")
        try:
            await cluster.finished(job)
        except Crash:
            await cluster.crash()
            await cluster.boot()
            done = await cluster.finished(job)
        else:
            break
        kept = {disk.volume for disk in cluster.config.all(Disk)}
        assert set(cluster.nodes.san.volumes) == kept, done.ops[0].error
        if kept:
            maker.powered = True
            await cluster.run("OP_DISK_REMOVE", disk="data")
    assert point > 4


async def test_after_a_failure_the_same_node_is_asked(
    cluster: SimCluster, vault: Vault
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW, node="node3")
    node = cluster.nodes.nodes["node3"]
    node.machine.refuse = lambda _, command: command.argv[0].endswith("/remove")
    error = await cluster.refused("OP_DISK_REMOVE", disk="data")
    assert isinstance(error, Failed)
    assert error.hint.endswith("gnt-disk forget --reason WHY data")
    states = [_state_of(last(cluster), n) for n in range(3)]
    assert states == ["done", "failed", "left out"]
    assert cluster.config.disk("data").quarantine
    node.machine.refuse = lambda _, __: False
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert vault.volumes == {}


def _state_of(job: Job, number: int) -> str:
    (op,) = job.ops
    return op.passed.get(number, "done" if number < op.cursor else "waiting")


async def test_a_shared_volume_is_removed_from_another_node(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_ADD", **NEW | {"provider": "san"}, node="node3")
    await off(cluster, "node3")
    await cluster.run("OP_DISK_REMOVE", disk="data")
    assert cluster.nodes.san.volumes == {}
    assert cluster.nodes.san.attached == {}


async def test_a_file_of_a_dead_node_names_the_way_out(cluster: SimCluster) -> None:
    new = {"disk_template": "file", "size": 64, "name": "lf"}
    await cluster.run("OP_DISK_ADD", **new, node="node3")
    await off(cluster, "node3")
    error = await cluster.refused("OP_DISK_REMOVE", disk="lf")
    assert str(error) == (
        "no node can work on disk lf: its data is on node3, marked offline"
    )
    assert error.hint.endswith("gnt-disk forget --reason WHY lf")


# -- forget ----------------------------------------------------------------------------


async def test_a_lost_disk_is_forgotten_and_its_node_can_go(
    cluster: SimCluster,
) -> None:
    new = {"disk_template": "file", "size": 64, "name": "lf"}
    await cluster.run("OP_DISK_ADD", **new, node="node3")
    await off(cluster, "node3")
    await cluster.refused("OP_NODE_REMOVE", node_name="node3")
    ran = {n: len(one.machine.ran) for n, one in cluster.nodes.nodes.items()}
    await cluster.run("OP_DISK_FORGET", disk="lf", why="node3 burnt")
    assert ran == {n: len(one.machine.ran) for n, one in cluster.nodes.nodes.items()}
    assert not cluster.config.knows(Disk, "lf")
    (op,) = last(cluster).ops
    assert [task.what for task in op.tasks] == ["forget disk lf: node3 burnt"]
    assert "stays where it is" in said(last(cluster))
    await cluster.run("OP_NODE_REMOVE", node_name="node3")


async def test_a_disk_in_use_is_not_forgotten(cluster: SimCluster) -> None:
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="ext",
        disks=[{"size": 64, "provider": "san", "name": "data"}],
        pnode="node2",
    )
    fields = {"disk": "data", "why": "lost"}
    error = await cluster.refused("OP_DISK_FORGET", **fields)
    assert str(error) == "disk data is attached to instance web, which runs"
    cluster.nodes.nodes["node2"].powered = False
    error = await cluster.refused("OP_DISK_FORGET", **fields)
    assert "may still run there" in str(error)
    cluster.nodes.nodes["node2"].powered = True
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await cluster.run("OP_DISK_FORGET", **fields)
    assert cluster.config.instance("web").disks == ()


async def test_a_disk_is_forgotten_for_a_reason(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ADD", **NEW | {"provider": "san"})
    error = await cluster.refused("OP_DISK_FORGET", disk="data", why=" ")
    assert isinstance(error, BadInput)


async def test_a_quarantined_disk_that_never_was_is_forgotten(
    cluster: SimCluster,
) -> None:
    config = cluster.config
    await cluster.run("OP_DISK_ADD", **NEW | {"provider": "san"})
    node = cluster.nodes.nodes["node1"]
    node.machine.refuse = lambda _, command: command.argv[0].endswith("/remove")
    await cluster.refused("OP_DISK_REMOVE", disk="data")
    assert cluster.config.disk("data").quarantine
    await cluster.run("OP_DISK_FORGET", disk="data", why="it never was")
    assert cluster.config.count(Disk) == config.count(Disk)


# -- instances -------------------------------------------------------------------------


async def instance(cluster: SimCluster) -> None:
    """Make an instance on node3 with a shared disk and a local one."""
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disks=[
            {"size": 64, "dev_type": "ext", "provider": "san", "name": "shared"},
            {"size": 64, "dev_type": "file", "name": "local"},
        ],
        pnode="node3",
    )


async def test_an_instance_of_a_dead_node_is_removed(cluster: SimCluster) -> None:
    await instance(cluster)
    await off(cluster, "node3")
    error = await cluster.refused(REMOVE, instance_name="web")
    assert error.hint.endswith("gnt-instance remove --ignore-failures web")
    await cluster.run(REMOVE, instance_name="web", ignore_failures=True)
    assert not cluster.config.knows(Instance, "web")
    assert cluster.nodes.san.volumes == {}
    assert [disk.label for disk in cluster.config.all(Disk)] == ["local"]
    assert "disk local stays behind" in said(last(cluster))
    assert "gnt-disk forget --reason WHY local" in said(last(cluster))
    await cluster.run("OP_DISK_FORGET", disk="local", why="node3 burnt")
    await cluster.run("OP_NODE_REMOVE", node_name="node3")


@pytest.mark.parametrize("ignore", [False, True])
async def test_an_instance_is_removed_although_its_storage_fails(
    cluster: SimCluster, ignore: bool
) -> None:
    """Its guest was stopped: there is no way back, but a failure to tell or ignore."""
    await instance(cluster)
    node = cluster.nodes.nodes["node3"]
    node.machine.refuse = lambda _, command: command.argv[0].endswith(
        ("/detach", "/remove")
    )
    fields = {"instance_name": "web", "ignore_failures": ignore}
    await cluster.finished(await cluster.submit(REMOVE, **fields))
    job = last(cluster)
    assert job.status == ("success" if ignore else "error")
    assert not cluster.config.knows(Instance, "web")
    (left,) = cluster.config.all(Disk)
    assert (left.label, left.quarantine is not None) == ("shared", True)
    assert ("Warning: remove disk shared on node3" in said(job)) is ignore
    assert "disk shared is quarantined" in said(job)
    assert sorted(job.ops[0].passed.values()) == ["failed", "failed", "left out"]


async def test_an_instance_of_a_silent_node_stays(cluster: SimCluster) -> None:
    """Nobody can tell whether it still writes: that is no failure to ignore."""
    await instance(cluster)
    cluster.nodes.nodes["node3"].powered = False
    fields = {"instance_name": "web", "ignore_failures": True}
    error = await cluster.refused(REMOVE, **fields)
    assert "may still run there" in str(error)


@pytest.mark.parametrize("door", ["disk", "instance"])
async def test_a_disk_is_taken_from_an_instance_of_a_dead_node(
    cluster: SimCluster, door: str
) -> None:
    await instance(cluster)
    await off(cluster, "node3")
    if door == "disk":
        await cluster.run("OP_DISK_DETACH", disk="local")
    else:
        mods = {"disks": [["detach", "local", {}]]}
        await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web", **mods)
    assert cluster.config.owner(cluster.config.disk("local")) is None


async def test_a_removal_from_an_instance_names_the_way_out(
    cluster: SimCluster,
) -> None:
    """As of a provider whose `remove` fails where there is no volume."""
    await instance(cluster)
    node = cluster.nodes.nodes["node3"]
    node.machine.refuse = lambda _, command: command.argv[0].endswith("/remove")
    mods = {"disks": [["remove", "shared", {}]]}
    error = await cluster.refused("OP_INSTANCE_SET_PARAMS", instance_name="web", **mods)
    assert error.hint.endswith("gnt-disk forget --reason WHY shared")
    await cluster.run("OP_DISK_FORGET", disk="shared", why="its volume is gone")
    assert [disk.label for disk in cluster.config.all(Disk)] == ["local"]
