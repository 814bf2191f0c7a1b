# SPDX-License-Identifier: BSD-2-Clause
"""Sources: measured load, storage units and speeds from a master, quietness."""

import json
import sys
from pathlib import Path

import pytest

from moorage.api.cluster_info import cluster_info
from moorage.api.query import Sources, query
from moorage.cli.htools import hbal, hinfo, hscan, remote
from moorage.errors import BadInput
from moorage.htools import Disk, load, sample
from moorage.htools.formats import luxi, mond, rapi, text
from moorage.htools.loader import Reading
from moorage.htools.utilization import Measured
from moorage.testing.cluster import ClusterBuilder, SimCluster

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import hscan as rapi_answers
import servers
from master import Master

FLEET = text.parse(
    "g|u|preferred|\n\n"
    "127.83.6.11|8192|512|7000|100000|90000|4|M|u\n"
    "127.83.6.12|8192|512|7000|100000|90000|4|N|u\n\n"
    "i1|512|10|1|running|Y|127.83.6.11||ext|\n"
    "i2|512|10|2|running|Y|127.83.6.11||ext|\n\n"
)
NODES = [node.name for node in FLEET.nodes]
LOADS = dict(zip(NODES, (1.5, 0.25), strict=True))
BY_NODE = "Initial score: 4.01049805"
"""What Ganeti's hbal prints with this load of nodes, ..."""
BY_INSTANCE = "Initial score: 3.76049805"
"""... with i1 at 0.5 and i2 at 0.25 ..."""
WITHOUT = "Initial score: 4.38549805"
"""... and with neither."""


def report(node, collector=mond.NODES, **data):
    found = data or {"cpu_number": 2, "cpus": [], "cpu_total": LOADS[node]}
    return {"name": collector, "data": found}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "cluster.data"
    path.write_text(text.dump(FLEET))
    return str(path)


@pytest.fixture
def told(tmp_path):
    def made(entries):
        path = tmp_path / "mond.json"
        rows = [{"node": node, "reports": found} for node, found in entries.items()]
        path.write_text(json.dumps(rows))
        return ["--mond", f"--mond-data={path}"]

    return made


def test_load_of_a_node_is_divided_over_its_processors_in_use():
    state = load(FLEET, Reading(measured=Measured(nodes=LOADS))).state
    assert [node.load[0] for node in state.nodes] == [1.5, 0.25]
    assert [inst.load for inst in state.insts] == [(0.375, 1, 1, 1), (0.75, 1, 1, 1)]


def test_load_of_instances_adds_up_on_their_nodes():
    how = Reading(measured=Measured(insts={"i1": 0.5, "i2": 0.25}))
    state = load(FLEET, how).state
    assert [node.load[0] for node in state.nodes] == [0.75, 0.0]


def test_hbal_and_hinfo_use_what_was_measured(data, told, capsys):
    words = ["-t", data, *told({node: [report(node)] for node in NODES})]
    assert hbal.main(words) == 0
    assert BY_NODE in capsys.readouterr().out
    assert hinfo.main(words) == 0
    assert "Cluster score: 4.01049805" in capsys.readouterr().out


def test_hbal_uses_what_xen_measured(data, told, capsys):
    entries = {
        NODES[0]: [
            report(NODES[0]),
            report(NODES[0], mond.INSTANCES, i1=0.5, i2=0.25, other=9),
        ],
        NODES[1]: [report(NODES[1], mond.INSTANCES, i2=7)],
    }
    assert hbal.main(["-t", data, *told(entries), "--mond-xen"]) == 0
    assert BY_INSTANCE in capsys.readouterr().out


@pytest.mark.parametrize(
    ("entries", "words", "says"),
    [
        ({NODES[0]: [report(NODES[0])]}, [], "Didn't receive an answer by all MonDs"),
        (
            {
                NODES[0]: [report(NODES[0])],
                NODES[1]: [report(NODES[1], cpu_total="1")],
            },
            [],
            "cpu-avg-load's data will be ignored",
        ),
        (
            {node: [report(node, mond.INSTANCES, i1=1)] for node in NODES},
            ["--mond-xen"],
            'No CPU information available for ["i2"]',
        ),
    ],
)
def test_load_that_is_incomplete_is_not_used(entries, words, says, data, told, capsys):
    words = ["-t", data, *told(entries), *words]
    assert hbal.main(words) == 0
    said = capsys.readouterr()
    assert says in said.err
    assert WITHOUT in said.out
    assert hbal.main([*words, "--exit-on-missing-mond-data"]) == 1
    assert "Error: Not all required data available" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--mond=no"], ["--ignore-dynu", "--mond"], []])
def test_nobody_is_asked_who_need_not_be(words, data, told, capsys):
    path = told({})[1]
    for asked in ([path], []):
        words = ["-t", data, *asked, *words, "--exit-on-missing-mond-data"]
        assert hbal.main(words) == 0
        assert "MonD" not in capsys.readouterr().err


def test_a_report_without_its_data_is_named_by_its_place():
    with pytest.raises(BadInput, match=r"^f: line 2, column 17: 0.reports.0 lacks"):
        mond.parse('[{"node": "n",\n    "reports": [{"name": "x"}]}]', "f", mond.NODES)


def test_every_node_is_asked_over_the_network(data, capsys):
    asked = []

    def answering(node):
        def reply(request):
            asked.append((node, request.split()[1].decode()))
            return servers.ok(json.dumps(report(node)))

        return servers.http(reply, node, mond.PORT)

    with answering(NODES[0]), answering(NODES[1]):
        assert hbal.main(["-t", data, "--mond"]) == 0
    assert BY_NODE in capsys.readouterr().out
    assert sorted(asked) == [(node, "/1/report/default/cpu-avg-load") for node in NODES]


@pytest.mark.parametrize(
    ("net", "answer"),
    [(7, b""), (8, b"HTTP/1.1 404 No\r\n\r\n"), (9, servers.ok("["))],
)
def test_a_node_that_does_not_answer_is_named(net, answer, tmp_path, capsys):
    # Each test has addresses of its own, because the port is always the same.
    path = tmp_path / "cluster.data"
    path.write_text(text.dump(FLEET).replace("127.83.6.", f"127.83.{net}."))
    nodes = [f"127.83.{net}.{host}" for host in (11, 12)]
    with servers.http(lambda _request: answer, nodes[0], mond.PORT):
        assert hbal.main(["-t", str(path), "--mond=yes"]) == 0
    said = capsys.readouterr()
    for node in nodes:
        assert f"Failed to contact node's {node} MonD for DC cpu-avg-load" in said.err
    assert WITHOUT in said.out


# -- a master ----------------------------------------------------------------------

UNITS = [
    {"sunit": ["drbd8", "xenvg"], "free": 100, "total": 900},
    {"sunit": ["ext", "nas", "fast"], "free": None, "total": None},
]


@pytest.mark.requirement("S4-05", "S4-06")
def test_a_master_tells_the_storage_units_of_its_nodes(tmp_path):
    shape = sample.Shape(nodes=3, instances=4, oddity=0.0)
    fleet = sample.cluster(1, shape)
    with Master(tmp_path / "socket", fleet) as there:
        there.answers["nodes"][1]["storage"] = UNITS
        there.answers["nodes"][2]["ndparams"]["cpu_speed"] = 1.5
        found = remote.luxi(there.path)
        words = [f"-L{there.path}", "-d", str(tmp_path), "--no-headers"]
        assert hscan.main(words) == 0
    units = found.nodes[1].units
    assert [unit.name for unit in units] == [("drbd8", "xenvg"), ("ext", "nas", "fast")]
    assert [(unit.free, unit.total) for unit in units] == [(100, 900), (None, None)]
    assert [node.units for node in (found.nodes[0], found.nodes[2])] == [None, None]
    assert [node.cpu_speed for node in found.nodes] == [1.0, 1.0, 1.5]
    line = (tmp_path / "LOCAL.data").read_text().splitlines()[3]
    assert line.endswith("|100,900,drbd8,xenvg;?,?,ext,nas,fast")


def test_a_dead_node_with_exclusive_storage_has_no_spindles():
    fleet = sample.cluster(1, sample.Shape(nodes=3, instances=4, oddity=0.0))
    nodes = [fleet.nodes[0]._replace(exclusive=True, offline=True), *fleet.nodes[1:]]
    answers = rapi_answers.answers(fleet.replaced(nodes=tuple(nodes)))
    found = rapi.parse({name: json.dumps(value) for name, value in answers.items()})
    assert found.nodes[0].spindles == 0
    assert found.nodes[1].spindles == fleet.nodes[1].spindles


# -- storage units decide ----------------------------------------------------------


@pytest.mark.requirement("S4-03", "S4-09")
@pytest.mark.parametrize(("room", "goes"), [(1024, True), (1023, False), (None, True)])
def test_hbal_moves_a_disk_where_its_unit_has_room(  # noqa: PLR0917 - fixtures
    room, goes, tmp_path, capsys, make, some_node, some_inst, unit
):
    def node(name, free):
        return some_node(name, units=(unit("drbd8", "xenvg", free),))

    nodes = [node("n0", 0), node("n1", 0), node("n2", room)]
    insts = [
        some_inst(f"i{at}", 0, secondary=1, template="drbd", disks=(Disk(1024),))
        for at in range(1)
    ]
    path = tmp_path / "c.data"
    path.write_text(text.dump(make(nodes, insts)))
    assert hbal.main(["-t", str(path), "-O", "n1"]) == 0
    assert ("n0:n2" in capsys.readouterr().out) == goes


# -- quietness ---------------------------------------------------------------------


@pytest.mark.parametrize(("words", "warns"), [([], True), (["-q"], False)])
def test_quiet_programs_do_not_warn(words, warns, data, capsys):
    assert hinfo.main(["-t", data, *words]) == 0
    assert ("is missing" in capsys.readouterr().err) == warns


async def test_our_own_master_is_understood(tmp_path):
    builder = ClusterBuilder(nodes=3).disk("root1")
    builder.instance("web1", disks=("root1",), tags=("prod",))
    sim = await SimCluster.start(tmp_path, builder)
    sources = Sources(sim.config_store, sim.nodes, sim.engine, 10.0)
    answers = {
        name: await query(*args, sources)
        for name, (method, args) in luxi.CALLS.items()
        if method == "Query"
    }
    answers["info"] = cluster_info(sim.config_store.config)
    await sim.stop()
    found = luxi.parse(json.loads(json.dumps(answers)))
    assert [node.name for node in found.nodes] == ["node1", "node2", "node3"]
    assert [inst.name for inst in found.instances] == ["web1"]
    assert found.instances[0].tags == ("prod",)
    assert found.nodes[0].master
    assert load(found).state.nodes[0].unallocated > 0


def test_a_node_that_does_not_answer_is_taken_as_offline(make, some_node, tmp_path):
    told = Master(tmp_path / "socket", make([some_node("a"), some_node("b")], []))
    told.socket.close()
    answers = {name: told._answer(*call) for name, call in luxi.CALLS.items()}
    names = list(luxi._NODE)
    row = answers["nodes"]["data"][1]
    for name in luxi._FIGURES:
        row[names.index(name)] = [2, None]
    found = luxi.parse(answers)
    assert [node.offline for node in found.nodes] == [False, True]
    assert found.warnings == ("node b gives no figures: it is taken as offline",)
    row[names.index("vm_capable")] = [0, False]
    assert luxi.parse(answers).warnings == ()
