# SPDX-License-Identifier: BSD-2-Clause
"""One cluster, asked through every door: verify, hcheck, hspace, hail, add.

The cluster is simulated, its master and socket are real, and so are the programs.
"""

import json
import re
import tempfile
from pathlib import Path

import pytest

from doors import MEMORY, Doors
from moorage.api.luxi import LuxiClient
from moorage.cli.htools import hail, hcheck, hscan, hspace
from moorage.testing.stored import SHARED_DIR

SPEC = {
    "memory-size": MEMORY,
    "cpu-count": 1,
    "disk-size": 64,
    "disk-count": 1,
    "nic-count": 0,
    "spindle-use": 1,
}


@pytest.fixture
def opened():
    made = []
    with tempfile.TemporaryDirectory() as directory:

        def opened_(nodes, without=()):
            made.append(Doors(Path(directory), nodes, without))
            return made[-1]

        yield opened_
        for one in made:
            one.close()


def unlosable(doors, capsys):
    """Return how many nodes hcheck says cannot be lost."""
    capsys.readouterr()
    hcheck.main([f"--luxi={doors.socket}", "--machine-readable", "--no-simulation"])
    out = capsys.readouterr().out
    return int(re.search(r"HCHECK_INIT_CLUSTER_GN1_FAIL=(\d+)", out)[1])


def room(doors, capsys):
    """Return how many more instances of the standard size hspace sees room for."""
    capsys.readouterr()
    hspace.main(
        [f"--luxi={doors.socket}", "--machine-readable", "--disk-template", "ext"]
    )
    out = capsys.readouterr().out
    first, last = (
        int(re.search(rf"HTS_{when}_INST_CNT=(\d+)", out)[1]) for when in ("INI", "FIN")
    )
    return last - first


def would_take(doors, tmp_path, capsys):
    """Say whether hail would place one more."""
    hscan.main([f"--luxi={doors.socket}", "-d", str(tmp_path)])
    request = {
        "type": "allocate",
        "name": "asked",
        "required_nodes": 1,
        "memory": MEMORY,
        "vcpus": 1,
        "disk_space_total": 64,
        "disk_template": "ext",
        "disks": [{"size": 64, "mode": "rw"}],
        "spindle_use": 1,
        "tags": [],
        "nics": [],
    }
    empty = {"nodegroups": {}, "nodes": {}, "instances": {}, "cluster_tags": []}
    empty["enabled_hypervisors"] = ["kvm"]
    message = tmp_path / "message"
    message.write_text(json.dumps(empty | {"request": request}))
    capsys.readouterr()
    hail.main(["-t", str(tmp_path / "LOCAL.data"), str(message)])
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)["success"]


@pytest.mark.requirement("S2-14", "S2-06")
def test_every_door_gives_one_answer(opened, tmp_path, capsys):
    """Safe, at the limit, and beyond: all doors agree at each step."""
    doors = opened(3)
    bounds = [{"min": SPEC | {"memory-size": 128}, "max": SPEC | {"cpu-count": 8}}]
    policy = {"minmax": bounds, "std": SPEC}
    assert doors.run("OP_CLUSTER_SET_PARAMS", ipolicy=policy)[0]
    left = room(doors, capsys)
    assert left == 6  # what is on one of three nodes fits on the other two
    for number in range(left):
        assert would_take(doors, tmp_path, capsys)
        assert doors.add(f"w{number}")
        assert (doors.verify(), unlosable(doors, capsys)) == (0, 0)
        assert room(doors, capsys) == left - number - 1
    assert not would_take(doors, tmp_path, capsys)
    assert not doors.add("more")
    assert doors.add("beyond", pnode="node1")
    lost = unlosable(doors, capsys)
    assert lost > 0
    assert doors.verify() == lost
    fits = room(doors, capsys) > 0  # what is lost already need not be kept
    assert would_take(doors, tmp_path, capsys) == fits
    assert doors.add("more") == fits
    assert doors.add("anyway", ignore_capacity=True) == fits
    assert doors.verify() == unlosable(doors, capsys)


@pytest.mark.requirement("S2-03")
def test_only_nodes_that_reach_the_provider_count(opened, capsys):
    """A provider that is valid on three of five nodes: survival counts those alone."""
    doors = opened(5, ("node4", "node5"))
    made = 0
    while made < 10 and doors.add(f"w{made}"):
        made += 1
        assert (doors.verify(), unlosable(doors, capsys)) == (0, 0)
    assert made == 6
    assert doors.add("beyond", pnode="node1")
    assert doors.verify() == unlosable(doors, capsys) > 0
    for name in ("node4", "node5"):
        fields = {"instance_name": "beyond", "target_node": name}
        assert not doors.run("OP_INSTANCE_MIGRATE", **fields)[0]


@pytest.mark.requirement("S2-14")
def test_disks_of_several_templates_are_read_alike(opened, capsys):
    """Memory is what survival asks for, whatever becomes of a local disk's data."""
    doors = opened(2)
    large = {"beparams": {"memory": 32_000}, "ignore_capacity": True}
    disks = [{"size": 64, "dev_type": "ext", "provider": "san"}]
    disks.append({"size": 64, "dev_type": "file"})
    for number in (1, 2):
        assert doors.add(f"w{number}", disks=disks, pnode=f"node{number}", **large)
    assert doors.verify() == unlosable(doors, capsys) == 2


def told(program, doors, capsys, *more):
    """Return what a program says about the cluster, by key where it tells keys."""
    capsys.readouterr()
    program.main([f"--luxi={doors.socket}", *more])
    return capsys.readouterr().out


@pytest.mark.requirement("S2-14")
def test_what_should_run_and_does_not_counts_at_every_door(opened, capsys):
    """Guests that ended keep their memory on record, for they will start again."""
    doors = opened(3)
    bounds = [{"min": SPEC | {"memory-size": 128}, "max": SPEC | {"cpu-count": 8}}]
    assert doors.run("OP_CLUSTER_SET_PARAMS", ipolicy={"minmax": bounds, "std": SPEC})[
        0
    ]
    for number in range(7):
        assert doors.add(f"w{number}", pnode=f"node{number % 3 + 1}")
    lost, more = unlosable(doors, capsys), room(doors, capsys)
    assert lost > 0
    doors.end_guests()
    assert unlosable(doors, capsys) == lost
    assert room(doors, capsys) == more
    assert len(doors.warned()) == lost


@pytest.mark.slow
@pytest.mark.requirement("S4-13", "S4-14")
def test_a_shared_directory_counts_once_at_every_door(opened, tmp_path, capsys):
    """One TiB that three nodes share is one TiB, and what is unknown is not 0."""
    doors = opened(3)
    doors.enable("sharedfile")
    out = told(hspace, doors, capsys, "--disk-template=sharedfile")
    assert re.search(r"DSK 1048576\b", out), out
    keys = told(hspace, doors, capsys, "-p", "--machine-readable")
    assert re.search(r"HTS_CLUSTER_DSK=1048576\b", keys), keys
    table = told(hscan, doors, capsys, "-d", str(tmp_path), "-p")
    assert "1024" in table
    assert "3072" not in table
    doors.enable("ext")
    keys = told(hspace, doors, capsys, "--machine-readable")
    assert "HTS_CLUSTER_DSK=unknown" in keys


@pytest.mark.requirement("S4-01", "S4-05")
def test_units_are_told_in_the_form_of_type_key_and_more(opened):
    """Each node's units with their room, and the one unit of each disk."""
    doors = opened(2)
    assert doors.add("s1", disk_template="sharedfile", disks=[{"size": 64}])
    assert doors.add("e1")
    with LuxiClient(doors.socket) as client:
        _, ((node, storage), *_) = client.query("node", ["name", "storage"])
        _, rows = client.query("instance", ["name", "disk.sunits"])
    assert node[1] == "node1"
    units = {tuple(one["sunit"][:2]): one for one in storage[1]}
    shared = units["sharedfile", SHARED_DIR]
    assert shared["sunit"] == ["sharedfile", SHARED_DIR, []]
    assert (shared["free"], shared["total"]) == (1024 * 1024, 1024 * 1024)
    assert units["ext", "san"]["free"] is units["ext", "san"]["total"] is None
    told = {name[1]: sunits[1] for name, sunits in rows}
    assert told["s1"] == [["sharedfile", SHARED_DIR, []]]
    assert told["e1"] == [["ext", "san", []]]
