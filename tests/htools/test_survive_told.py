# SPDX-License-Identifier: BSD-2-Clause
"""The survival certificate as an operator reads it."""

import json
from importlib import import_module

import pytest

from moorage.htools import Disk, Group, load
from moorage.htools.constants import Mirror
from moorage.htools.formats import text
from moorage.htools.survival.certificate import certify


@pytest.fixture
def told(tmp_path, capsys):
    def run(fleet, *words):
        path = tmp_path / "cluster.data"
        path.write_text(text.dump(fleet))
        main = import_module("moorage.cli.htools.hcheck").main
        status = main(["-t", str(path), *words])
        return status, capsys.readouterr().out

    return run


@pytest.fixture
def small(make, some_node, some_inst):
    """Three nodes; the biggest instance finds no other."""
    nodes = [some_node(f"node{at}") for at in (1, 2, 3)]
    nodes.append(some_node("node4", offline=True))
    insts = [some_inst("big", 2, 6000), some_inst("a", 0, 4000)]
    return make(nodes, [*insts, some_inst("b", 1, 4000)])


@pytest.mark.requirement("S2-07")
def test_the_stranded_are_named_with_the_numbers_of_each_node(small, told):
    status, out = told(small, "--survive")
    assert status == 1
    assert out.splitlines() == [
        "loss of node1: everyone restarts",
        "  a -> node2",
        "loss of node2: everyone restarts",
        "  b -> node1",
        "loss of node3: NOT everyone restarts",
        "  big is stranded",
        "    node1: memory (asked 6000 MiB, unallocated 4192 MiB)",
        "    node2: memory (asked 6000 MiB, unallocated 4192 MiB)",
        "    node4: offline or drained",
        "loss of node4 (it is offline or drained already): nobody is on it",
        "1 of 4 nodes cannot be lost: node3",
    ]


def test_quiet_tells_trouble_only_and_verbose_what_is_left(small, told):
    assert "everyone restarts\n" not in told(small, "--survive", "-q")[1].replace(
        "NOT everyone restarts", ""
    )
    assert (
        "a -> node2 (192 MiB of memory left there)" in told(small, "--survive", "-v")[1]
    )


def test_without_the_capacity_checks_the_status_does_not_tell(small, told):
    status, out = told(small, "--survive", "--no-capacity-checks")
    assert status == 0
    assert "big is stranded" in out


def test_nodes_taken_as_offline_take_nobody(small, told):
    status, out = told(small, "--survive", "-O", "node2")
    assert status == 1
    assert "  a is stranded" in out
    assert "    node2: offline or drained" in out


def test_groups_are_named_where_there_are_several(make, some_node, some_inst, told):
    nodes = [some_node("n1"), some_node("n2"), some_node("m1")]
    insts = [some_inst("a", 0), some_inst("alone", 2)]
    fleet = make(nodes, insts)
    groups = (*fleet.groups, Group("far", "uuid-2"))
    rows = [row._replace(group=at // 2) for at, row in enumerate(fleet.nodes)]
    fleet = fleet.replaced(groups=groups, nodes=tuple(rows))
    status, out = told(fleet, "--survive")
    assert status == 1
    assert "loss of n1 (group default): everyone restarts" in out
    assert "loss of m1 (group far): NOT everyone restarts" in out
    assert "  alone is stranded: no node is left" in out


def test_a_way_that_one_by_one_misses_is_told(make, some_node, some_inst, told):
    # x goes to the emptier node, where only y would have fitted.
    nodes = [some_node(f"n{at}", mem_total=8192.0) for at in (1, 2, 3)]
    insts = [some_inst("y", 0, 4100), some_inst("x", 0, 3000)]
    insts += [some_inst("f2", 1, 5100), some_inst("f3", 2, 4000)]
    status, out = told(make(nodes, insts), "--survive")
    assert status == 1
    assert "  y is stranded" in out
    assert "  restarted one by one; by hand there is a way: y -> n3, x -> n2" in out
    found = json.loads(told(make(nodes, insts), "--survive=json")[1])
    assert found["nodes"][0]["searched"] is True


@pytest.fixture
def stored(make, some_node, some_inst, unit):
    """Two nodes with a fast unit each, mirrored disks, and a pool for all three."""
    fast = ("lvm-vg", "fast")
    nas = unit("ext", "nas", 5000)
    nodes = [
        some_node("n1", units=(unit(*fast, 20000), unit("drbd8", "x", 9000), nas)),
        some_node("n2", units=(unit(*fast, 3000), unit("drbd8", "x", 9000), nas)),
        some_node("n3", units=(unit("drbd8", "x", 9000),)),
    ]
    insts = [
        some_inst("db", 0, 500, template="plain", disks=(Disk(5000, unit=fast),)),
        some_inst("web", 0, 500, template="drbd", secondary=1, disks=(Disk(900),)),
        some_inst(
            "mail",
            1,
            500,
            template="ext",
            disks=(Disk(50, unit=("ext", "nas")), Disk(60, unit=fast)),
        ),
    ]
    return make(nodes, insts)


@pytest.mark.requirement("S2-03", "S4-13")
def test_a_lost_pool_strands_whoever_has_a_disk_there(stored):
    found = certify(load(stored).state).values()
    assert found["pools"] == [
        {
            "pool": "ext/nas",
            "nodes": ["n1", "n2"],
            "survives": False,
            "stranded": ["mail"],
            "perhaps": [],
            "disks": {"mail": [0]},
        }
    ]


@pytest.mark.requirement("S4-03")
def test_a_lost_unit_concerns_its_disks_alone(stored):
    found = certify(load(stored).state).values()
    units = {(one["lost"], one["node"]): one for one in found["units"]}
    fast = units["lvm-vg/fast", "n1"]
    assert [one["instance"] for one in fast["restarts"]] == ["db"]
    assert {
        one["node"]: one["constraint"] for one in fast["restarts"][0]["reasons"]
    } == {
        "n2": "unit",
        "n3": "no such unit",
    }
    mirrored = units["drbd8/x", "n1"]
    assert mirrored["restarts"] == [
        {"instance": "web", "node": "n2", "how": "failover", "memory_left": 7192}
    ]
    assert units["drbd8/x", "n2"]["second_copies"] == ["web"]


def test_units_and_pools_in_words(stored, told):
    out = told(stored, "--survive")[1]
    assert "loss of drbd8/x on n1: everyone restarts\n  web -> n2\n" in out
    assert "loss of drbd8/x on n2: nobody stops\n" in out
    assert "  without a second copy then: web\n" in out
    # Text has one summed disk an instance, and no name of a unit: the only pool.
    assert "loss of pool ext/nas (2 nodes): 1 instance stranded" in out


@pytest.mark.requirement("S2-01")
def test_local_data_is_said_to_be_lost(make, some_node, some_inst, told):
    fleet = make(
        [some_node("n1"), some_node("n2")], [some_inst("a", 0, template="plain")]
    )
    assert "  a -> n2 (made anew, without its data)" in told(fleet, "--survive")[1]


def test_mirrored_ones_without_a_second_node_say_so(make, some_node, some_inst):
    nodes = [some_node("n1"), some_node("n2", offline=True)]
    insts = [some_inst("a", 0, template="drbd", secondary=1)]
    state = load(make(nodes, insts)).state
    assert state.insts[0].mirror is Mirror.INTERNAL
    reasons = certify(state).values()["nodes"][0]["restarts"][0]["reasons"]
    assert [(one["node"], one["constraint"]) for one in reasons] == [
        ("n2", "offline or drained")
    ]
