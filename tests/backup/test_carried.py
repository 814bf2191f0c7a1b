# SPDX-License-Identifier: BSD-2-Clause
"""Exports that lie on another node than the one that reads them, on simulated nodes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.jobs import View
from moorage.model.export import Dump, Export, Form, name_of_disk
from moorage.ops.backup import carrying, dumps
from moorage.ops.backup.remove import BackupRemove
from moorage.storage import Command
from moorage.storage.exports import Exports
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour
from moorage.units import Mib


@pytest.fixture
async def cluster(tmp_path: Path) -> Any:
    """Return the harbour, in which an export of web3 lies on node3."""
    found = await harbour(tmp_path)
    yield found
    await found.stop()


def asked(**fields: Any) -> dict[str, Any]:
    made = {"mode": "import", "src_path": "web3", "instance_name": "new"}
    return {**made, "start": False, **fields}


def ran(cluster: SimCluster, verb: str) -> list[str]:
    return [node for node, called in cluster.nodes.calls if called == verb]


def lying(cluster: SimCluster) -> set[str]:
    return {one for one in cluster.nodes.san.files if "/sim/export/" in one}


def data(cluster: SimCluster, instance: str) -> list[str]:
    san = cluster.nodes.san
    disks = cluster.config.disks_of(cluster.config.instance(instance))
    return [san.volumes[disk.volume]["data"] for disk in disks]


async def test_it_is_fetched_to_the_node_that_was_named(cluster: SimCluster) -> None:
    before = lying(cluster)
    assert await cluster.run(
        "OP_INSTANCE_CREATE", **asked(src_node="node3", pnode="node1", rate=5)
    ) == ["node1"]
    assert data(cluster, "new") == data(cluster, "web3")
    assert lying(cluster) == before
    assert ran(cluster, "export.offer") == ["node3"]
    assert ran(cluster, "export.fetch") == ["node1"]
    (offer,) = cluster.nodes.nodes["node3"].machine.offers.values()
    assert offer.rate == 5
    assert offer.address == cluster.config.node("node3").secondary_ip


async def test_the_master_knows_the_doors_that_its_jobs_have_open(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names them to nodes: they outlive a key of its own that is renewed."""
    seen = list[tuple[str, ...]]()
    machine = cluster.nodes.nodes["node1"].machine
    fetch = machine.fetch

    async def fetched(*args: Any) -> None:
        seen.append(carrying.doors(cluster.engine.jobs.values()))
        assert args[2].digest in seen[0]
        await fetch(*args)

    monkeypatch.setattr(machine, "fetch", fetched)
    await cluster.run("OP_INSTANCE_CREATE", **asked(src_node="node3", pnode="node1"))
    assert [len(one) for one in seen] == [1]
    assert carrying.doors(cluster.engine.jobs.values()) == ()


async def test_where_it_lies_nothing_is_fetched(cluster: SimCluster) -> None:
    await cluster.run("OP_INSTANCE_CREATE", **asked(pnode="node3"))
    assert not ran(cluster, "export.offer")


async def test_a_directory_that_nodes_share_is_read_where_it_is_seen(
    cluster: SimCluster,
) -> None:
    for name in cluster.nodes.nodes:
        cluster.nodes.san.mounts[f"{name} /sim/export"] = {"source": "/nas/export"}
    await cluster.run("OP_BACKUP_EXPORT", instance_name="web3", target_node="node2")
    await cluster.run("OP_INSTANCE_CREATE", **asked(src_node="node2", pnode="node1"))
    assert not ran(cluster, "export.offer")
    assert data(cluster, "new") == data(cluster, "web3")


@pytest.mark.parametrize(
    "more", [{}, {"iallocator": "hail"}, {"group_name": "default"}]
)
async def test_the_planner_chooses_a_node(
    cluster: SimCluster, more: dict[str, Any]
) -> None:
    """One that is drained is not chosen, and the export may lie on it."""
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", drained=True)
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node2", drained=True)
    assert await cluster.run("OP_INSTANCE_CREATE", **asked(**more)) == ["node1"]
    assert ran(cluster, "export.offer") == ["node3"]


async def test_imports_at_once_leave_room_for_each_other(cluster: SimCluster) -> None:
    """What one of them has chosen is claimed: the next one goes elsewhere."""
    for node in cluster.nodes.nodes.values():
        node.machine.size = 4096
    names = ("one", "two")
    wanted = [asked(instance_name=name, beparams={"memory": 1800}) for name in names]
    opcode = {"OP_ID": "OP_INSTANCE_CREATE", "start": True}
    assert not await cluster.at_once(*({**one, **opcode} for one in wanted))
    chosen = [cluster.config.instance(name).primary_node for name in names]
    assert len(set(chosen)) == len(names), chosen


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pnode": "node1", "iallocator": "hail"}, "exclude each other"),
        ({"iallocator": "nosuch"}, "nosuch"),
        ({"beparams": {"memory": 10**6}}, "new"),
        ({"src_node": "node2"}, "there is no export web3 on node node2"),
    ],
)
async def test_what_cannot_be_changes_nothing(
    cluster: SimCluster, fields: dict[str, Any], said: str
) -> None:
    before = lying(cluster)
    error = await cluster.refused("OP_INSTANCE_CREATE", **asked(**fields))
    assert said in error.message
    assert lying(cluster) == before
    assert not ran(cluster, "export.offer")


@pytest.mark.parametrize("named", [{}, {"src_node": "node3"}])
@pytest.mark.parametrize("marked", [True, False])
async def test_a_node_that_gives_no_answer_is_not_said_to_have_no_export(
    cluster: SimCluster, named: dict[str, str], *, marked: bool
) -> None:
    cluster.nodes.cut_power("node3")
    if marked:
        await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    disk = {"name": "new", "src_path": "web3", "node": "node1"}
    for error in (
        await cluster.refused("OP_INSTANCE_CREATE", **asked(pnode="node1", **named)),
        await cluster.refused("OP_DISK_IMPORT", **disk, **named),
    ):
        where = " on node node3" if named else ""
        silent = "" if marked and not named else "; no answer came from node3"
        assert error.message == f"there is no export web3{where}{silent}"


async def test_a_node_that_is_not_reached_leaves_nothing(cluster: SimCluster) -> None:
    before = lying(cluster), set(cluster.nodes.san.volumes)
    far = cluster.config.node("node3").secondary_ip
    cluster.nodes.nodes["node1"].machine.unreached[far] = "no route to host"
    error = await cluster.refused("OP_INSTANCE_CREATE", **asked(pnode="node1"))
    assert error.message == f"no connection to {far}: no route to host"
    assert (lying(cluster), set(cluster.nodes.san.volumes)) == before
    assert not cluster.nodes.nodes["node3"].machine.offers


async def test_what_is_being_fetched_ends_before_its_room_is_given_back(
    cluster: SimCluster,
) -> None:
    """What comes is ended where it comes: who sends it may be out of reach."""
    far = cluster.config.node("node3").secondary_ip
    cluster.nodes.nodes["node1"].machine.unreached[far] = "no route to host"
    await cluster.refused("OP_INSTANCE_CREATE", **asked(pnode="node1"))
    (ended,) = (call for call in cluster.nodes.calls if call[1] == "script.kill")
    assert ended == ("node1", "script.kill")
    behind = cluster.nodes.calls[cluster.nodes.calls.index(ended) :]
    assert behind.index(("node3", "export.withdraw")) > 0
    assert behind.index(("node1", "export.drop")) > 0


@pytest.mark.parametrize(
    ("step", "op", "fields"),
    [
        ("restore", "OP_INSTANCE_CREATE", asked(pnode="node1")),
        ("fetch", "OP_BACKUP_EXPORT", {"instance_name": "web1", "shutdown": False}),
        ("fetch", "OP_DISK_EXPORT", {"disk": "here"}),
    ],
)
async def test_what_is_on_its_way_is_not_removed_meanwhile(
    cluster: SimCluster, step: str, op: str, fields: dict[str, Any]
) -> None:
    """It is listed as half made, so somebody may want to tidy up."""
    here = {"disk_template": "file", "node": "node1", "size": 64, "name": "here"}
    await cluster.run("OP_DISK_ADD", **here)
    removals = list[asyncio.Task[Any]]()

    async def tidied(name: str) -> None:
        if not name.startswith(f"before {step}") or removals:
            return
        (draft,) = {one.split("/")[3] for one in lying(cluster) if "+uuid" in one}
        removal = {"instance_name": draft.removesuffix(".new")}
        refusal = cluster.refused("OP_BACKUP_REMOVE", **removal)
        removals.append(asyncio.create_task(refusal))
        for _ in range(1000):  # as far as it comes meanwhile
            await asyncio.sleep(0)

    cluster.extra_point = tidied
    to = {} if step == "restore" else {"target_node": "node2"}
    await cluster.run(op, **fields, **to)
    (removal,) = removals
    assert "there is no export" in (await removal).message


async def test_the_target_is_tidied_though_the_source_is_dead(
    cluster: SimCluster,
) -> None:
    """Its offer ends by itself: nobody's room waits until the node is back."""
    before = lying(cluster)
    source = cluster.nodes.nodes["node3"]
    tidy = list[bool]()

    async def dies(name: str) -> None:
        if name.startswith("before fetch"):
            cluster.nodes.nodes["node1"].machine.unreached[
                cluster.config.node("node3").secondary_ip
            ] = "No route to host"
            source.lose_power()
        if name.startswith("before undoing offer"):
            tidy.append(lying(cluster) == before)
            source.boot()

    cluster.extra_point = dies
    error = await cluster.refused(
        "OP_INSTANCE_CREATE", **asked(src_node="node3", pnode="node1")
    )
    assert "No route to host" in error.message
    assert tidy == [True]


@pytest.mark.parametrize("length", [3, 150, 151, 250])
async def test_what_is_on_its_way_is_held_by_the_lock_of_its_export(
    cluster: SimCluster, length: int
) -> None:
    """Also where its name is too long to stand whole in the name on the way."""
    name, node = "w" * length, cluster.config.node("node3")
    view = View(cluster.config)
    way = dumps.apart(view, name)
    removal = BackupRemove(instance_name=way, node="node3")
    assert dumps.hold(node, name) in list(removal.locks(view))


async def test_another_export_than_the_one_that_was_named_is_not_sent(
    cluster: SimCluster,
) -> None:
    """One that took its place meanwhile has another uuid."""
    files, key = cluster.nodes.san.files, "node3:/sim/export/web3/manifest.json"

    async def swapped(name: str) -> None:
        if name.startswith("before offer"):
            other = json.loads(files[key]["data"]) | {"uuid": "another"}
            files[key] = files[key] | {"data": json.dumps(other)}

    cluster.extra_point = swapped
    error = await cluster.refused("OP_INSTANCE_CREATE", **asked(pnode="node1"))
    assert error.message == "export web3 on node node3 is another one by now"
    assert not ran(cluster, "export.fetch")


async def test_a_running_guest_is_exported_to_another_node(cluster: SimCluster) -> None:
    await cluster.run(
        "OP_BACKUP_EXPORT", instance_name="web1", shutdown=False, target_node="node2"
    )
    san = cluster.nodes.san
    assert {one for one in lying(cluster) if "web1" in one} == {
        f"node2:/sim/export/web1/{name}"
        for name in ("manifest.json", "disk0.qcow2", "disk1.qcow2")
    }
    root, _ = cluster.config.disks_of(cluster.config.instance("web1"))
    held = san.files["node2:/sim/export/web1/disk0.qcow2"]["data"]
    assert held == san.files[root.volume]["data"]
    told = await cluster.run("OP_BACKUP_VERIFY", instance_name="web1")
    assert told == {"node2": []}


async def test_a_node_that_reads_the_disks_sends_no_other_files_than_were_ordered(
    monkeypatch: pytest.MonkeyPatch, cluster: SimCluster
) -> None:
    """Whoever has its key may say anything; its files would be in the export."""
    sealed, more = Exports.seal, Dump(file="config.ini", form=Form.RAW, size=Mib(1))

    def seal(
        self: Exports, name: str, export: Export, filled: Any, *, marked: bool = False
    ) -> Any:
        if marked:
            export = replace(export, dumps=(*export.dumps, more))
            path = self.growing(name, more)
            yield Command(("printf", "%s", "[export]"), stdout=path)
        return (yield from sealed(self, name, export, filled, marked=marked))

    monkeypatch.setattr(Exports, "seal", seal)
    before = lying(cluster)
    web1 = {"instance_name": "web1", "shutdown": False, "target_node": "node2"}
    error = await cluster.refused("OP_BACKUP_EXPORT", **web1)
    assert error.message == (
        "node node2 was to fetch disk0.qcow2, disk1.qcow2, and is offered other files"
    )
    assert lying(cluster) == before


async def test_a_disk_that_stays_on_one_node_goes_to_another(
    cluster: SimCluster,
) -> None:
    made = {"disk_template": "file", "node": "node1", "size": 64, "name": "here"}
    await cluster.run("OP_DISK_ADD", **made)
    disk = cluster.config.disk("here")
    cluster.nodes.san.files[f"node1:{disk.volume}"] |= {"data": "a letter"}
    await cluster.run("OP_DISK_EXPORT", disk="here", target_node="node2")
    name = name_of_disk(disk)
    assert not [one for one in lying(cluster) if one.startswith("node1:")]
    await cluster.run("OP_DISK_IMPORT", name="new", src_path=name, node="node3")
    new = cluster.config.disk("new")
    assert cluster.nodes.san.files[f"node3:{new.volume}"]["data"] == "a letter"
    assert not [one for one in lying(cluster) if one.startswith("node1:")]


async def test_dumps_that_only_a_script_reads_travel_too(cluster: SimCluster) -> None:
    web3 = {"instance_name": "web3"}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **web3, os_name="tiny")
    await cluster.run("OP_BACKUP_EXPORT", **web3, format="ganeti")
    before = lying(cluster)
    new = asked(pnode="node1", os_type="tiny")
    await cluster.run("OP_INSTANCE_CREATE", **new)
    assert data(cluster, "new") == data(cluster, "web3")
    assert lying(cluster) == before
