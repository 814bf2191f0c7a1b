# SPDX-License-Identifier: BSD-2-Clause
"""A template of tomorrow lives through a cluster: one class, and one line of facts.

Nothing else of the product knows it: not the planner, not the operations, not the
command line. The robot that holds the tapes is a few lines of the simulated storage.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.disk_templates import FACTS, Mirror, Parameter, TemplateFacts
from moorage.errors import (
    BadInput,
    MoorageError,
    NoCapacity,
    NotSupported,
    WrongState,
)
from moorage.model import Disk, Unit
from moorage.model.ipolicy import DEFAULT
from moorage.storage import (
    TEMPLATES,
    Can,
    Capabilities,
    Command,
    Outcome,
    Output,
    Steps,
    Template,
    VolumeRequest,
    Where,
    nothing,
)
from moorage.testing import storage, tools
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.units import Mib

ROOM = 4096


def facts(mirror: Mirror) -> TemplateFacts:
    return TemplateFacts(
        name="tape",
        mirror=mirror,
        unit="tape",
        parameters=(Parameter("label", str, "What is printed on it."),),
    )


class Tape(Template):
    """Tapes of a robot."""

    name = "tape"
    capabilities = Capabilities(facts(Mirror.EXTERNAL), can=Can.CREATE | Can.ROOM)

    @classmethod
    def logical_id(cls, born: VolumeRequest) -> tuple[Any, ...]:
        if born.pair:
            return born.pair.logical_id
        return ("robot", f"{born.unique}.tape.disk{born.index}")

    @classmethod
    def unit_key(cls, *_: Any) -> str:
        return "robot"

    def create(self, disk: Disk) -> Steps[Outcome]:
        label = disk.params.get("label", "")
        yield Command(("mtx", "load", disk.volume, str(disk.size), label))
        return Outcome.CHANGED

    def remove(self, disk: Disk) -> Steps[Outcome]:
        yield Command(("mtx", "eject", disk.volume))
        return Outcome.CHANGED

    def attach(self, disk: Disk) -> Steps[Where]:
        told = yield Command(("mtx", "where", disk.volume))
        return Where(path=told.stdout.strip(), block=True)

    def detach(self, disk: Disk) -> Steps[Outcome]:
        del disk
        return nothing()

    def room(self) -> Steps[tuple[Unit, ...]]:
        told = yield Command(("mtx", "room"))
        free = Mib(int(told.stdout))
        return (Unit(template=self.name, key="robot", total=Mib(ROOM), free=free),)


def mtx(robot: storage.San, _node: str, words: list[str], _command: Command) -> Output:
    """Do as the robot does."""
    verb, *rest = words
    if verb == "load":
        volume, size, *label = rest
        new = {"size": int(size), "provider": "robot", "data": "".join(label)}
        robot.volumes.setdefault(volume, new)
    elif verb == "eject":
        robot.volumes.pop(rest[0], None)
    elif verb == "where":
        return Output(f"/dev/{rest[0]}\n" if rest[0] in robot.volumes else "")
    used = sum(one["size"] for one in robot.volumes.values())
    return Output(f"{ROOM - used}\n")


def declare(monkeypatch: pytest.MonkeyPatch, mirror: Mirror) -> None:
    """Write the class, and the line of facts."""
    found = facts(mirror)
    able = Capabilities(found, can=Can.CREATE | Can.ROOM)
    monkeypatch.setattr(Tape, "capabilities", able)
    monkeypatch.setitem(TEMPLATES, "tape", Tape)
    monkeypatch.setitem(FACTS, "tape", found)
    allowed = [*DEFAULT["disk-templates"], "tape"]  # derived from the line's rank
    monkeypatch.setitem(DEFAULT, "disk-templates", allowed)
    monkeypatch.setitem(tools.TOOLS, "mtx", mtx)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    found = await SimCluster.start(tmp_path / "nodes", ClusterBuilder(3))
    yield found
    await found.stop()


async def add(
    cluster: SimCluster, name: str, size: int = 1024, *nodes: str, **more: Any
) -> Any:
    fields: dict[str, Any] = {
        "instance_name": name,
        "disk_template": "tape",
        "disks": [{"size": size, **more}],
    }
    at = dict(zip(("pnode", "snode"), nodes, strict=False))
    return await cluster.run("OP_INSTANCE_CREATE", **fields, **at)


async def test_its_whole_life_where_every_node_reaches_it(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, Mirror.EXTERNAL)
    await add(cluster, "web", label="blue")
    (disk,) = cluster.config.disks_of(cluster.config.instance("web"))
    assert (disk.dev_type, disk.params) == ("tape", {"label": "blue"})
    assert cluster.nodes.san.volumes[disk.volume]["data"] == "blue"
    home = cluster.config.instance("web").primary_node

    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")
    assert cluster.config.instance("web").primary_node != home
    assert (await cluster.run("OP_CLUSTER_VERIFY"))["errors"] == []
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web", timeout=0)
    await cluster.run("OP_DISK_DETACH", disk=disk.uuid)
    await cluster.run("OP_DISK_ATTACH", disk=disk.uuid, instance_name="web")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    assert cluster.nodes.san.volumes == {}


async def test_its_parameters_are_those_of_its_line(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, Mirror.EXTERNAL)
    with pytest.raises(BadInput, match="template 'tape' has no parameter 'colour'"):
        await add(cluster, "web", colour="blue")


async def test_what_it_has_no_room_for_is_refused_with_the_reason(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, Mirror.EXTERNAL)
    await add(cluster, "web", 3072)
    with pytest.raises(NoCapacity) as caught:
        await add(cluster, "big", 2048)
    assert "pool tape/robot" in caught.value.message
    assert "asked 2048 MiB, free 1024 MiB" in caught.value.message
    await add(cluster, "small", 1024)


async def test_with_its_data_on_one_node_it_stays(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, Mirror.NONE)
    await add(cluster, "web")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    with pytest.raises(NotSupported, match="'tape' does not allow migrations"):
        await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")


async def test_with_its_copies_on_two_nodes_it_has_a_secondary(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tapes tell nothing of their copies, so somebody must insist on a failover."""
    declare(monkeypatch, Mirror.INTERNAL)
    with pytest.raises(BadInput, match="mirrored disks need a second node"):
        await add(cluster, "web", 1024, "node1")
    await add(cluster, "web", 1024, "node1", "node2")
    web = cluster.config.instance("web")
    (disk,) = cluster.config.disks_of(web)
    assert disk.nodes == ("node1", "node2")
    to = {"instance_name": "web", "target_node": "node3"}
    with pytest.raises(WrongState, match="its secondary node node2"):
        await cluster.run("OP_INSTANCE_FAILOVER", **to)
    with pytest.raises(WrongState, match="it may have missed what was written"):
        await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web")
    anyway = {"instance_name": "web", "ignore_consistency": True}
    await cluster.run("OP_INSTANCE_FAILOVER", **anyway)
    assert cluster.config.instance("web").primary_node == "node2"
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    assert cluster.nodes.san.volumes == {}


async def test_a_program_that_simulated_nodes_lack_stops_nothing_else(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a node where nobody installed it: no room there, and all else goes on."""
    declare(monkeypatch, Mirror.EXTERNAL)
    monkeypatch.delitem(tools.TOOLS, "mtx")
    await cluster.run("OP_DISK_ADD", disk_template="sharedfile", size=64, name="data")
    with pytest.raises(MoorageError, match=r"mtx.*(not found|127)|tape"):
        await add(cluster, "web", 1024, "node1")
    assert cluster.config.disk("data").size == 64
