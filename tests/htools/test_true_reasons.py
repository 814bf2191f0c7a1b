# SPDX-License-Identifier: BSD-2-Clause
"""Reasons say what is so: another group, the last MiB, data that is lost."""

import json

import pytest

from moorage.cli.htools import hcheck
from moorage.htools import Allocate, Asking, Fleet, Group, load, place
from moorage.htools.formats import text
from moorage.htools.survival.explain_loss import lose


def test_a_node_of_another_group_is_not_called_offline(some_node, some_inst):
    groups = (Group("one", "u1"), Group("two", "u2"))
    nodes = (
        some_node("n0", group=0),
        some_node("n1", group=1),
        some_node("n2", group=0),
    )
    inst = some_inst("a", 0, template="drbd", secondary=1)
    state = load(Fleet(groups, nodes, (inst,))).state.group_view(0)
    found = lose(state, 0).stranded[0].reasons
    assert [one.constraint for one in found] == ["in another group"]


def test_who_lacks_the_last_mib_is_told_so(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    state = load(
        make(nodes, [some_inst("big", 0, 6144), some_inst("b", 1, 2048)])
    ).state
    found = lose(state, 0).stranded[0].reasons
    assert [one.sentence() for one in found] == [
        "memory (asked 6144 MiB, unallocated 6144 MiB, to be left at least 1 MiB)"
    ]
    wanted = Allocate(some_inst("new", -1, 2048), 1)
    told = [
        one.sentence() for one in place(state, wanted, Asking(capacity=False)).reasons
    ]
    assert "n0: memory (asked 2048 MiB, unallocated 2048 MiB, to be left at" in told[0]


@pytest.fixture
def plain(make, some_node, some_inst, tmp_path):
    """Return the file of a cluster with local disks on one node."""
    nodes = [some_node(f"n{at}") for at in range(3)]
    people = [
        some_inst("p1", 1, template="plain"),
        some_inst("p2", 1, template="file"),
        some_inst("s", 0),
        some_inst("b", 1, template="blockdev"),
    ]
    path = tmp_path / "c.data"
    path.write_text(text.dump(make(nodes, people)))
    return str(path)


def test_data_that_goes_with_a_node_is_in_the_summary_and_in_quiet(plain, capsys):
    assert hcheck.main(["-t", plain, "--survive", "-q"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "loss of n1: the data is lost of p1, p2",
        "Any one of 3 nodes can be lost.",
        "1 of 3 nodes take the data of 2 instances with them: n1",
    ]


def test_data_that_goes_with_a_node_is_told_below_it(plain, capsys):
    assert hcheck.main(["-t", plain, "--survive"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("loss of n1: everyone restarts")
    assert "  b -> n2 (set up anew)" in lines[at:] or "  b -> n0 (set up anew)" in lines
    assert "  the data is lost of p1, p2" in lines[at:]
    assert hcheck.main(["-t", plain, "--survive=json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["data_lost"] for one in found["nodes"]] == [[], ["p1", "p2"], []]
