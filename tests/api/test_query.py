# SPDX-License-Identifier: BSD-2-Clause
"""Queries: fields, filters, who is asked, and what they cost."""

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from moorage.api.cluster_info import cluster_info
from moorage.api.query import (
    RESOURCES,
    Snapshot,
    Sources,
    fields_of,
    old_style,
    query,
    rows,
)
from moorage.api.query.select import Selection
from moorage.errors import BadInput, Failed, NotFound
from moorage.htools.fleet import Fleet
from moorage.htools.formats import luxi
from moorage.jobs import Lock
from moorage.model import Config, Instance, Nic, load
from moorage.model.export import Export
from moorage.ops.volumes.directories import directories
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.lvm import GROUP


def built() -> ClusterBuilder:
    builder = ClusterBuilder(nodes=3).node("far1", "far")
    builder.disk("root1").disk("data1", size=2048).disk("spare")
    builder.objects["spare"] = replace(builder.objects["spare"], name=None)
    builder.disk("bad", quarantine="job 7: nobody knows")
    builder.instance(
        "web10",
        disks=("root1",),
        beparams={"maxmem": 512, "minmem": 512, "vcpus": 2},
        nics=(Nic(uuid="n1", mac="aa:00:00:00:00:01", ip="10.0.0.1"),),
        tags=("prod", "web"),
    )
    builder.instance("web2", "node2", ("data1",), admin_state="up")
    return builder


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, built())
    yield cluster
    await cluster.stop()


def sources(sim: SimCluster, patience: float = 10.0) -> Sources:
    return Sources(sim.config_store, sim.nodes, sim.engine, patience)


async def values(sim: SimCluster, what: str, *fields: str, qfilter=None):
    answer = await query(what, fields, qfilter, sources(sim))
    return [[value for _, value in row] for row in answer["data"]]


async def cells(sim: SimCluster, what: str, *fields: str, qfilter=None):
    return (await query(what, fields, qfilter, sources(sim)))["data"]


def asked(sim: SimCluster) -> list[str]:
    return [node for node, verb in sim.nodes.calls if verb == "facts"]


def guest(sim: SimCluster, node: str, uuid: str, state: str = "running") -> None:
    """Let a guest be on a node."""
    found = {"uuid": uuid, "name": uuid, "state": state, "memory": 128, "vcpus": 1}
    sim.nodes.san.guests[f"{node} {uuid}"] = {"state": found}


# -- fields ------------------------------------------------------------------------


async def test_configured_fields_ask_no_node(sim):
    shown = await values(
        sim, "instance", "name", "pnode", "disk_template", "disk.sizes", "be/vcpus"
    )
    assert shown == [
        ["web2", "node2", "ext", [2048], 1],
        ["web10", "node1", "ext", [1024], 2],
    ]
    assert asked(sim) == []


async def test_missing_values_have_a_status(sim):
    (row,) = await cells(
        sim,
        "instance",
        "disk.size/0",
        "disk.size/5",
        "network_port",
        "nosuch",
        "nic.mac/0",
        "nic.ip/x",
        "hv/kernel_path",
        qfilter=["==", "name", "web10"],
    )
    assert [status for status, _ in row] == [0, 3, 3, 1, 0, 1, 0]


async def test_fields_are_described():
    described = fields_of("disk")["fields"]
    assert [one["name"] for one in described] == sorted(o["name"] for o in described)
    template = next(one for one in described if one["name"] == "dev_type")
    assert template["title"] == "Template"
    assert fields_of("node", ["zzz"])["fields"][0]["kind"] == "unknown"
    with pytest.raises(NotFound, match="there is disk, export, filter, group"):
        fields_of("cheese")


@pytest.mark.parametrize("name", sorted(RESOURCES))
async def test_every_field_can_be_shown(sim, name):
    await sim.run("OP_DISK_RENAME", disk="root1", new_name="system")
    await sim.engine.locks.acquire(99, [], 0)
    fields = [field.name for field in RESOURCES[name].all_fields()]
    for row in await cells(sim, name, *fields):
        assert all(status in (0, 3) for status, _ in row)


async def test_disks_tell_who_has_them(sim):
    shown = await values(
        sim, "disk", "name", "status", "instance", "iv_name", "provider"
    )
    assert shown == [
        [None, "detached", None, None, "san"],
        ["bad", "quarantined", None, None, "san"],
        ["data1", "attached", "web2", "disk/0", "san"],
        ["root1", "attached", "web10", "disk/0", "san"],
    ]


async def test_disks_tell_what_group_and_cluster_preset_for_them(sim):
    for level, given in (("CLUSTER", {}), ("GROUP", {"group_name": "default"})):
        limits = {"total_iops_sec": 500, "total_bytes_sec": 10**6}
        if level == "GROUP":
            limits = {"total_iops_sec": 200}
        await sim.run(f"OP_{level}_SET_PARAMS", diskparams={"ext": limits}, **given)
    own = [["modify", "data1", {"total_iops_sec": 7}]]
    await sim.run("OP_INSTANCE_SET_PARAMS", instance_name="web2", disks=own)
    assert await values(sim, "disk", "name", "presets") == [
        [None, {"total_iops_sec": 200, "total_bytes_sec": 10**6}],
        ["bad", {"total_iops_sec": 200, "total_bytes_sec": 10**6}],
        ["data1", {"total_bytes_sec": 10**6}],
        ["root1", {"total_iops_sec": 200, "total_bytes_sec": 10**6}],
    ]


async def test_nodes_and_groups_count_instances(sim):
    assert await values(sim, "node", "name", "pinst_cnt", "sinst_cnt", "role") == [
        ["far1", 0, 0, "C"],
        ["node1", 1, 0, "M"],
        ["node2", 1, 0, "C"],
        ["node3", 0, 0, "C"],
    ]
    assert await values(sim, "group", "name", "node_cnt", "pinst_cnt") == [
        ["default", 3, 2],
        ["far", 1, 0],
    ]


# -- live --------------------------------------------------------------------------


async def test_status_says_what_is_wrong(sim):
    guest(sim, "node2", "web2")
    shown = await values(sim, "instance", "name", "status", "oper_ram")
    assert shown == [["web2", "running", 128], ["web10", "ADMIN_down", None]]
    sim.nodes.nodes["node2"].lose_power()
    shown = await cells(sim, "instance", "status", "oper_ram", "oper_state")
    assert shown[0] == [(0, "ERROR_nodedown"), (2, None), (2, None)]
    await sim.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    shown = await cells(sim, "instance", "status", "oper_ram", "oper_state")
    assert shown[0] == [(0, "ERROR_nodeoffline"), (4, None), (4, None)]


async def test_a_guest_on_the_wrong_node_is_shown(sim):
    guest(sim, "node3", "web2")
    shown = await values(sim, "instance", "name", "status")
    assert shown[0] == ["web2", "ERROR_wrongnode"]


async def test_each_needed_node_is_asked_once(sim):
    fields = ("status", "oper_ram", "oper_vcpus")
    await values(sim, "instance", *fields, qfilter=["==", "name", "web2"])
    assert asked(sim) == ["node2"]
    sim.nodes.calls.clear()
    await values(sim, "node", "name", qfilter=[">", "mfree", 0])
    assert sorted(asked(sim)) == ["far1", "node1", "node2", "node3"]


async def test_the_configuration_narrows_down_who_is_asked(sim):
    shown = await values(
        sim,
        "instance",
        "name",
        qfilter=["&", ["==", "pnode", "node1"], ["!=", "status", "running"]],
    )
    assert shown == [["web10"]]
    assert asked(sim) == ["node1"]


async def test_a_node_that_hangs_does_not_hang_the_query(sim):
    sim.nodes.hold = asyncio.Event()
    answer = await query("node", ["name", "mfree"], None, sources(sim, patience=0.01))
    assert all(row[1] == (2, None) for row in answer["data"])
    sim.nodes.hold.set()


async def test_a_node_that_hangs_is_left_alone_for_a_minute(sim, caplog):
    """Else each list would wait for it, and it could hang for as long as it likes."""
    now, hold = [1000.0], asyncio.Event()
    sim.nodes.hold = hold
    from_it = dataclasses.replace(sources(sim, 0.3), clock=lambda: now[0])
    fields = ["name", "mfree"]
    await query("node", fields, None, from_it)
    before = len(asked(sim))
    assert "lists do without a node for 60 s: node node1 said" in caplog.text
    hold.set()
    sim.nodes.hold = None
    for later, again in ((59.0, 0), (2.0, before), (1.0, before)):
        now[0] += later
        answer = await query("node", fields, None, from_it)
        assert (answer["data"][0][1] == (2, None)) is not bool(again)
        assert len(asked(sim)) == before + again
        before += again


async def planned(sim: SimCluster) -> Fleet:
    """Return the fleet that the planner reads from the master's answers."""
    names = {"nodes": "node", "groups": "group", "instances": "instance"}
    answers = {
        key: await query(names[key], arguments[1], None, sources(sim))
        for key, (method, arguments) in luxi.CALLS.items()
        if method == "Query"
    }
    answers["info"] = cluster_info(sim.config_store.config)
    return luxi.parse(json.loads(msgspec.json.encode(answers)))


@pytest.mark.requirement("S4-02", "S4-05")
async def test_the_planner_reads_the_storage_units_of_the_masters_answers(sim):
    units = {unit.name: unit for unit in (await planned(sim)).nodes[0].units}
    measured = {*directories(sim.config_store.config.cluster).items()}
    measured |= {("lvm-vg", GROUP), ("drbd8", GROUP)}
    provided = {("ext", name) for name in ("plainsan", "san", "usersan")}
    assert set(units) == measured | provided
    assert all(units[name].free == 1024 * 1024 for name in measured)
    assert all(units[name].free is None for name in provided)  # not 0


@pytest.mark.parametrize(
    ("templates", "seen"),
    [
        (("ext", "sharedfile"), "ext"),
        (("ext", "file"), "file"),
        (("sharedfile", "sharedfile"), "sharedfile"),
    ],
)
async def test_the_planner_reads_disks_of_several_templates(tmp_path, templates, seen):
    builder = ClusterBuilder(nodes=2)
    for number, template in enumerate(templates):
        builder.disk(f"d{number}", template)
    builder.instance("web", disks=("d0", "d1"))
    sim = await SimCluster.start(tmp_path, builder)
    inst = (await planned(sim)).instances[0]
    assert inst.template == seen
    assert [disk.unit and disk.unit[0] for disk in inst.disks] == list(templates)
    await sim.stop()


async def test_room_is_that_of_the_first_enabled_template(sim):
    await sim.run(
        "OP_CLUSTER_SET_PARAMS", enabled_disk_templates=["ext", "sharedfile", "file"]
    )
    (row,) = await values(
        sim, "node", "dtotal", "dfree", "mtotal", qfilter=["==", "name", "node1"]
    )
    assert row == [1024 * 1024, 1024 * 1024, 65536]


# -- filters -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qfilter", "names"),
    [
        (None, ["web2", "web10"]),
        (["=", "name", "web2"], ["web2"]),
        (["|", ["==", "name", "web2"], ["==", "name", "web10"]], ["web2", "web10"]),
        (["=~", "name", "0$"], ["web10"]),
        (["!", ["=~", "name", "0$"]], ["web2"]),
        (["=[]", "tags", "prod"], ["web10"]),
        (["?", "admin_up"], ["web2"]),
        ([">", "be/maxmem", 500], ["web10"]),
        (["<", "name", 5], []),
        (["==", "network_port", 5], []),
        (["&", ["=", "pnode", "node2"], ["?", "admin_up"]], ["web2"]),
    ],
)
async def test_filters(sim, qfilter, names):
    assert await values(sim, "instance", "name", qfilter=qfilter) == [
        [n] for n in names
    ]


@pytest.mark.parametrize(
    "qfilter",
    [
        [],
        ["name"],
        ["==", "nosuch", 1],
        ["=~", "name", "("],
        ["~~", "name", "x"],
        [["=="]],
        [7, "name", "x"],
    ],
)
async def test_bad_filters_are_refused(sim, qfilter):
    with pytest.raises(BadInput):
        await values(sim, "instance", "name", qfilter=qfilter)


async def test_a_filter_as_deep_as_a_well_is_refused(sim):
    qfilter = ["?", "name"]
    for _ in range(500):
        qfilter = ["!", qfilter]
    with pytest.raises(BadInput, match="nested"):
        await values(sim, "instance", "name", qfilter=qfilter)


async def test_an_unknown_name_is_said_to_be_unknown(sim):
    with pytest.raises(NotFound, match="instance 'wbe2' is not known") as caught:
        await values(sim, "instance", "name", qfilter=["==", "name", "wbe2"])
    assert "web2" in caught.value.hint
    wanted = ["|", ["==", "name", "spare"], ["==", "uuid", "spare"]]
    assert await values(sim, "disk", "uuid", qfilter=wanted) == [["spare"]]


async def test_old_queries_give_bare_values(sim):
    at = sources(sim)
    assert await old_style("instance", ["web2"], ["name", "pnode"], at) == [
        ["web2", "node2"]
    ]
    assert len(await old_style("node", [], ["name"], at)) == 4
    with pytest.raises(BadInput, match="nosuch"):
        await old_style("node", None, ["nosuch"], at)


async def test_jobs_and_locks(sim):
    await sim.refused("OP_DISK_REMOVE", disk="root1")
    (row,) = await values(
        sim, "job", "id", "status", "summary", "opresult", qfilter=["==", "id", 1]
    )
    assert row[:3] == [1, "error", ["DISK_REMOVE(root1)"]]
    name, (message, code), details = row[3][0]
    assert (name, code) == ("OpPrereqError", "wrong_state")
    assert "attached to instance web10" in message
    assert details["hint"] == "gnt-disk detach root1"
    with pytest.raises(NotFound, match="job 5"):
        await values(sim, "job", "id", qfilter=["==", "id", 5])


async def test_every_resource_lists_its_objects_in_order(sim):
    for number in (10, 9, 100):
        await sim.refused("OP_DISK_REMOVE", disk=f"root{number}")
    held = [Lock("node", f"n{number}", shared=True) for number in (10, 9)]
    await sim.engine.locks.acquire(1, held, 0)
    scene = sources(sim).snapshot()
    exports = [Export(name=name) for name in ("e10", "e9", "e1")]
    scene.exports = {"node2": exports, "node1": exports, "node3": Failed("mute")}
    several = set()
    for name, resource in RESOURCES.items():
        listed = list(resource.every(scene))
        assert listed == sorted(listed, key=resource.order), name
        several |= {name} if len(listed) > 1 else set()
    assert several >= {"disk", "export", "instance", "job", "lock", "node"}


async def test_names_beside_another_filter_do_not_say_the_order(sim):
    """As Ganeti: only a filter of names alone is answered in their order."""
    named = ["|", ["==", "name", "web10"], ["==", "name", "web2"]]
    assert await values(sim, "instance", "name", qfilter=named) == [["web10"], ["web2"]]
    both = ["&", named, ["!=", "pnode", "node3"]]
    assert await values(sim, "instance", "name", qfilter=both) == [["web2"], ["web10"]]


# -- cost --------------------------------------------------------------------------


def large(count: int) -> Config:
    builder = ClusterBuilder(nodes=100)
    for number in range(count):
        builder.disk(f"d{number}a").disk(f"d{number}b")
        node, disks = f"node{number % 100 + 1}", (f"d{number}a", f"d{number}b")
        builder.instance(f"inst{number}.example.com", node, disks)
    return load(1, builder.objects.values())


@pytest.mark.slow
def test_ten_thousand_instances_are_listed_in_less_than_a_second():
    scene = Snapshot(large(10_000))
    instance = RESOURCES["instance"]
    names = ("name", "hypervisor", "os", "pnode", "status", "oper_ram")
    begun = time.process_time()
    found = Selection(instance, None).first(scene)
    shown = rows([instance.find(name) for name in names], found, scene)
    assert time.process_time() - begun < 10
    assert len(shown) == 10_000


class Counting:
    """A table of objects that counts who walks over it."""

    def __init__(self, real):
        self.real, self.walks = real, 0

    def __call__(self, scene):
        self.walks += 1
        return self.real(scene)


@pytest.mark.parametrize(
    ("qfilter", "walks"),
    [
        (["==", "name", "web2"], 0),
        (["|", ["=", "name", "web2"], ["=", "uuid", "web10"]], 0),
        (["&", ["?", "admin_up"], ["=", "name", "web2"]], 0),
        (["|", ["=", "name", "web2"], ["?", "admin_up"]], 1),
        (["?", "admin_up"], 1),
    ],
)
def test_a_name_is_found_without_a_walk(qfilter, walks):
    every = Counting(RESOURCES["instance"].every)
    resource = dataclasses.replace(RESOURCES["instance"], every=every)
    scene = Snapshot(load(1, built().objects.values()))
    found = Selection(resource, qfilter).first(scene)
    assert "web2" in [one.name for one in found]
    assert every.walks == walks


def test_a_second_copy_counts_for_its_node():
    builder = ClusterBuilder().disk("d", nodes=("node1", "node3"))
    builder.instance("i", "node1", ("d",))
    scene = Snapshot(load(1, builder.objects.values()))
    node, instance = RESOURCES["node"], RESOURCES["instance"]
    found = [scene.config.node("node3")]
    fields = [node.find("sinst_cnt"), node.find("sinst_list")]
    assert rows(fields, found, scene) == [[(0, 1), (0, ["i"])]]
    one = scene.config.get(Instance, "i")
    assert rows([instance.find("snodes")], [one], scene) == [[(0, ["node3"])]]


def test_templates_are_asked_for_their_directories():
    config = load(1, ClusterBuilder().objects.values())
    found = directories(config.cluster)
    assert found["file"] == "/local"
    assert "ext" not in found
