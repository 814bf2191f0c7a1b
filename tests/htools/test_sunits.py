# SPDX-License-Identifier: BSD-2-Clause
"""Storage units as the design writes them, in every input; pools once; unknown room."""

import json

import pytest

from moorage.cli.htools import hail, hbal, hspace
from moorage.cli.htools.work import hscan
from moorage.errors import BadInput
from moorage.htools import Disk, Unit, load
from moorage.htools.cluster_stats import Room
from moorage.htools.formats import iallocator, jsontext, luxi, rapi, text
from moorage.pictures import scenes
from moorage.pictures.bars import STAYS

POOL = ("sharedfile", "/srv/shared")


@pytest.fixture
def read(asked):
    """Return what reads a node that lists some units, in one of the inputs."""
    return lambda *units, where: node_with(asked(), units, where)


def node_with(message, units, where):
    listed = [{"sunit": one, "free": 900, "total": 1000} for one in units]
    if where == "text":
        words = [[*one[:2], *(one[2] if len(one) > 2 else [])] for one in units]
        column = ";".join(",".join(("900", "1000", *map(str, row))) for row in words)
        line = f"n1|1|0|1|1|1|1|N|u|1||N|0|1|1.0|{column}"
        return text.parse(f"g|u|preferred|\n\n{line}\n\n\n", "f").nodes[0]
    if where == "iallocator":
        node = message["nodes"]["n1"] | {"storage": listed, "total_spindles": 4}
        message["nodes"] = {"n1": node}
        return iallocator.parse(json.dumps(message), "f").fleet.nodes[0]
    cells = dict.fromkeys(("mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal"), 9)
    row = cells | {
        "name": "n1", "group.uuid": "u", "offline": False, "drained": False,
        "vm_capable": True, "tags": [], "storage": listed, "sptotal": 4,
        "ndparams": {"exclusive_storage": False, "spindle_count": 4},
    }  # fmt: skip
    return rapi._node(jsontext.decoded(row, "nodes"), {"u": 0})


@pytest.mark.requirement("S4-05", "S4-06", "S4-07")
@pytest.mark.parametrize("where", ["text", "iallocator", "luxi"])
def test_units_are_read_in_the_form_of_the_design(where, read):
    node = read(["lvm-vg", "xenssdvg", [False]], ["drbd8", "xenvg", []], where=where)
    assert node.units == (
        Unit(("lvm-vg", "xenssdvg"), 900, 1000),
        Unit(("drbd8", "xenvg"), 900, 1000),
    )
    assert not node.exclusive


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize("where", ["text", "iallocator", "luxi"])
def test_the_form_without_parameters_is_read_too(where, read):
    node = read(["file", "/srv"], ["sharedfile", "/shared"], where=where)
    assert [(one.name, one.shared) for one in node.units] == [
        (("file", "/srv"), False), (("sharedfile", "/shared"), True)
    ]  # fmt: skip


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize("where", ["text", "iallocator", "luxi"])
def test_the_flag_of_exclusive_storage_is_no_part_of_the_name(where, read):
    node = read(["lvm-vg", "xenvg", [True]], where=where)
    assert node.units == (Unit(("lvm-vg", "xenvg"), 900, 1000, exclusive=True),)
    assert node.exclusive


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize("where", ["text", "iallocator", "luxi"])
def test_other_parameters_tell_units_apart(where, read):
    node = read(["rbd", "pool", ["ceph1"]], ["rbd", "pool", ["ceph2"]], where=where)
    assert [unit.name[2] for unit in node.units] == ["ceph1", "ceph2"]


@pytest.mark.requirement("S4-06")
@pytest.mark.parametrize("where", ["text", "iallocator", "luxi"])
def test_drbd_is_another_word_for_drbd8(where, read):
    assert read(["drbd", "xenvg"], where=where).units[0].name == ("drbd8", "xenvg")


@pytest.mark.requirement("S4-02")
@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("text", "f: line 3, column 16: 'drbd8/xenvg' is not listed once only"),
        (
            "iallocator",
            "f: line 1, column .*: nodes.n1.storage.1.sunit is listed twice",
        ),
        ("luxi", "nodes: storage.1.sunit is listed twice"),
    ],
)
def test_one_unit_twice_is_an_error_with_its_place(where, place, read):
    with pytest.raises(BadInput, match=place):
        read(["drbd8", "xenvg", [False]], ["drbd", "xenvg"], where=where)


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize("bad", [["lvm-vg"], [1, "x"], "lvm-vg", [], ["a", "b", [3]]])
def test_what_is_no_unit_is_an_error_with_its_place(bad, read):
    with pytest.raises(BadInput, match=r"^f: line 1, column \d+: nodes.n1.storage.0"):
        read(bad, where="iallocator")


@pytest.mark.requirement("S4-06", "S4-07")
def test_a_text_file_of_the_design_balances_drbd(tmp_path, capsys):
    line = "{}|16384|0|{}|100000|90000|8|N|u|4||N|0|0|1.0|{},4000,drbd,xenvg"
    nodes = [line.format(f"n{at}", 16384 - 3000 * (at == 0), 2000) for at in range(3)]
    inst = "i{}|1000|500|1|running|Y|n0|n1|drbd||1|-|N"
    people = [inst.format(at) for at in range(3)]
    path = tmp_path / "c.data"
    rows = "\n".join((*nodes, "", *people, "", ""))
    path.write_text(f"g|u|preferred|\n\n{rows}\n")
    assert hbal.main(["-t", str(path), "-S", str(tmp_path / "plan")]) == 0
    assert "=>" in capsys.readouterr().out
    assert ",4000,drbd8,xenvg\n" in (tmp_path / "plan.balanced").read_text()


@pytest.mark.requirement("S4-05", "S4-07")
def test_what_is_written_is_read_again(make, some_node):
    units = (
        Unit(("lvm-vg", "xenvg"), 5, 9, exclusive=True),
        Unit(("rbd", "pool", "ceph1"), None, None, shared=True),
    )
    fleet = make([some_node("n0", units=units, exclusive=True)], [])
    assert text.parse(text.dump(fleet)).nodes[0].units == units


def test_hail_takes_a_message_of_the_design(asked, tmp_path, capsys):
    message = asked()
    for node in message["nodes"].values():
        listed = {"sunit": ["sharedfile", "/s", []], "free": 2048, "total": 4096}
        node["storage"] = [listed]
    disk = {"size": 1024, "sunit": ["sharedfile", "/s", []]}
    message["request"] |= {"disk_template": "sharedfile", "disks": [disk]}
    policy = message["nodegroups"]["u"]["ipolicy"]
    policy["disk-templates"] = ["sharedfile"]
    path = tmp_path / "message"
    path.write_text(json.dumps(message))
    assert hail.main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["success"]


@pytest.fixture
def placed(asked, tmp_path, capsys):
    """Return what asks hail for a place on nodes with some units."""

    def ask(template, nodes, disk, *units):
        message = asked()
        listed = [{"sunit": name, "free": free, "total": 4096} for name, free in units]
        for node in message["nodes"].values():
            node["storage"] = listed
        message["request"] |= {"disk_template": template, "required_nodes": nodes}
        message["request"]["disks"] = [disk]
        message["nodegroups"]["u"]["ipolicy"]["disk-templates"] = [template]
        path = tmp_path / "message"
        path.write_text(json.dumps(message))
        assert hail.main([str(path)]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


@pytest.mark.requirement("S4-01", "S4-05")
def test_a_request_that_names_no_unit_gets_the_first_of_its_type(placed):
    """Ganeti's masters name none; nodes list two of a type as the design does."""
    first, second = ["file", "/first"], ["file", "/second"]
    disk = {"size": 1000}
    assert placed("file", 1, disk, (first, 1000), (second, 10))["success"]
    told = placed("file", 1, disk, (first, 10), (second, 1000))
    assert "FailDisk: 2" in told["info"]
    named = disk | {"sunit": second}
    assert placed("file", 1, named, (first, 10), (second, 1000))["success"]


@pytest.mark.requirement("S4-06", "S4-09")
@pytest.mark.parametrize(("size", "fits"), [(1872, True), (1873, False)])
def test_a_mirrored_disk_takes_its_metadata_besides(placed, size, fits):
    """As in the cluster itself: 128 MiB of a unit with 2000."""
    told = placed("drbd", 2, {"size": size}, (["drbd8", "xenvg"], 2000))
    assert told["success"] is fits, told


@pytest.mark.requirement("S3-28", "S4-07")
def test_hbal_names_the_mirrored_disks_beside_others(tmp_path, capsys):
    """What it prints is taken by the master, who refuses to guess which are meant."""
    line = "{}|16384|0|{}|100000|90000|8|N|u|4||N|0|0|1.0|{},4000,drbd8,xenvg;9,9,ext,s"
    nodes = [line.format(f"n{at}", 16384 - 4000 * (at < 2), 2000) for at in range(4)]
    inst = "i{}|1000|628|1|running|Y|n0|n1|drbd||1|-|N|{}"
    mixed, alone = "1,-,ext,s;500,-,drbd8,xenvg", "500,-,drbd8,xenvg"
    people = [inst.format(at, mixed if at % 2 else alone) for at in range(4)]
    path = tmp_path / "c.data"
    rows = "\n".join((*nodes, "", *people, "", ""))
    path.write_text(f"g|u|preferred|\n\n{rows}\n")
    assert hbal.main(["-t", str(path), "-C"]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = [one for one in lines if "replace-disks" in one]
    assert said
    for one in said:
        assert ("--disks=1 " in one) == one.endswith(("i1", "i3")), one
    assert any("--disks" in one for one in said)


# -- pools, and room that nobody knows -------------------------------------------------


def pooled(make, some_node, some_inst, *units, template="sharedfile"):
    """Return a cluster of three nodes with the same units."""
    nodes = [some_node(f"n{at}", units=units, disk_total=0.0) for at in range(3)]
    people = [some_inst("a", 0, template=template, disks=(Disk(1024),))]
    return make(nodes, people)


def room_keys(tmp_path, capsys, fleet, *words):
    """Return what hspace says, by key."""
    path = tmp_path / "c.data"
    path.write_text(text.dump(fleet))
    assert hspace.main(["-t", str(path), "--machine-readable", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    return dict(line.removeprefix("HTS_").split("=", 1) for line in lines)


@pytest.mark.requirement("S4-13")
def test_a_pool_of_all_nodes_counts_once(make, some_node, some_inst, tmp_path, capsys):
    fleet = pooled(make, some_node, some_inst, Unit(POOL, 900_000, 2**20, shared=True))
    words = [
        "--disk-template",
        "sharedfile",
        "-l",
        "2",
        "--standard-alloc",
        "1g,128m,1",
    ]
    keys = room_keys(tmp_path, capsys, fleet, *words)
    assert keys["CLUSTER_DSK"] == "1048576"
    assert keys["INI_DSK_FREE"] == keys["INI_MNODE_DSK_AVAIL"] == "900000"
    assert keys["FIN_DSK_FREE"] == str(900_000 - 2 * 1024)
    line = hscan.summary(load(fleet).state).split()
    assert line[6:8] == ["1024", "878"]


@pytest.mark.requirement("S4-13")
def test_what_is_on_each_node_adds_up_beside_the_pool(make, some_node, some_inst):
    local = Unit(("file", "/srv"), 100, 400)
    fleet = pooled(make, some_node, some_inst, local, Unit(POOL, 50, 60, shared=True))
    room = Room.of(load(fleet).state.nodes)
    assert (room.total, room.free, room.used, room.best) == (1260.0, 350, 910, 150)


@pytest.mark.requirement("S4-13")
def test_a_volume_group_that_is_two_units_counts_once(
    make, some_node, some_inst, tmp_path, capsys
):
    both = [Unit((kind, "xenvg"), 100, 500) for kind in ("lvm-vg", "drbd8")]
    disks = (Disk(100, unit=("drbd8", "xenvg")), Disk(100, unit=("lvm-vg", "xenvg")))
    inst = some_inst("a", 0, template="plain", disk=328, disks=disks)
    fleet = make([some_node(f"n{at}", units=tuple(both)) for at in range(2)], [inst])
    keys = room_keys(tmp_path, capsys, fleet, "--disk-template", "plain", "-l", "1")
    assert keys["CLUSTER_DSK"] == "1000"
    assert keys["INI_DSK_FREE"] == "200"
    assert keys["INI_MNODE_DSK_AVAIL"] == "100"
    (room,) = scenes.rooms([scenes.Scene("now", load(fleet).state)], 0)
    (bar,) = room.bars
    assert (bar.used, bar.capacity) == (400, 500)
    assert sum(part.amount for part in bar.parts if part.kind == STAYS) == 328


@pytest.mark.requirement("S4-14")
def test_room_that_nothing_tells_is_unknown(
    make, some_node, some_inst, tmp_path, capsys
):
    pool = Unit(("ext", "san"), None, None, shared=True)
    fleet = pooled(make, some_node, some_inst, pool, template="ext")
    words = ["--disk-template", "ext", "-l", "2"]
    keys = room_keys(tmp_path, capsys, fleet, *words)
    told = {key: value for key, value in keys.items() if "DSK" in key}
    spec = {key for key in told if "SPEC" in key}
    assert {told[key] for key in told.keys() - spec} == {"unknown"}
    assert keys["ALLOC_INSTANCES"] == "2"
    assert hscan.summary(load(fleet).state).split()[6:8] == ["unknown", "unknown"]
    path = tmp_path / "c.data"
    assert hspace.main(["-t", str(path), *words]) == 0
    out = capsys.readouterr().out
    assert "DSK unknown, CPU" in out
    assert "disk usage efficiency: unknown" in out


@pytest.mark.requirement("S4-08", "S4-14")
def test_without_units_a_node_without_a_disk_has_none(
    make, some_node, tmp_path, capsys
):
    nodes = [some_node(f"n{at}", disk_total=0.0, disk_free=0) for at in range(2)]
    fleet = make([node._replace(units=None) for node in nodes], [])
    keys = room_keys(tmp_path, capsys, fleet, "--disk-template", "ext", "-l", "1")
    assert keys["CLUSTER_DSK"] == "0"


def test_luxi_asks_for_the_units():
    assert "storage" in luxi.CALLS["nodes"][1][1]
