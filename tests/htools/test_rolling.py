# SPDX-License-Identifier: BSD-2-Clause
"""Rolling reboots: nobody loses both nodes at once, and everybody has a place."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import rolling as parity

from moorage.cli.htools import hroller
from moorage.errors import NoCapacity
from moorage.htools import load, sample
from moorage.htools.colouring import HEURISTICS, Graph
from moorage.htools.formats import text
from moorage.htools.rolling import batches, graph, ordered, relocations


@pytest.mark.oracle
@pytest.mark.skipif(
    not Path("/usr/bin/hroller").exists(), reason="ganeti-htools is not installed"
)
@pytest.mark.parametrize("seed", range(1, 120))
def test_hroller_decides_the_same(seed, tmp_path):
    words, why = parity.differ("hroller", seed, tmp_path)
    assert why == "", words


@st.composite
def graphs(draw):
    low = draw(st.integers(0, 3))
    high = low + draw(st.integers(0, 9))
    ends = st.integers(low, high)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=30))
    return Graph.of(low, high, [*pairs, *((b, a) for a, b in pairs)])


@settings(max_examples=60, deadline=None)
@given(found=graphs())
@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_neighbours_have_different_colours(heuristic, found):
    colours = HEURISTICS[heuristic](found)
    assert sorted(at for members in colours for at in members) == list(found.vertices)
    for members in colours:
        for at in members:
            assert not set(found.around(at)) & (set(members) - {at})


def state_of(seed, fill=0.3, **shape):
    wanted = sample.Shape(nodes=8, instances=20, oddity=0.0, fill=fill, **shape)
    return load(sample.cluster(seed, wanted)).state


def planned(state, **how):
    members = [node.idx for node in state.nodes]
    colouring = HEURISTICS["Dsatur"](graph(state, members))
    return ordered(batches(state, colouring, **how), state.nodes)


@pytest.mark.parametrize("seed", range(8))
def test_no_reboot_takes_both_nodes_of_an_instance(seed):
    state = state_of(seed, kind="mixed")
    found = planned(state)
    assert sorted(at for batch in found for at in batch.nodes) == list(range(8))
    for batch in found:
        down = set(batch.nodes)
        for old, new in zip(state.insts, batch.state.insts, strict=True):
            if old.s >= 0:
                assert not {old.p, old.s} <= down
            else:
                assert new.p not in down


@pytest.mark.parametrize("seed", range(8))
def test_full_evacuation_leaves_nothing_on_the_nodes(seed):
    state = state_of(seed, 0.1, kind="drbd")
    for batch in planned(state, evacuate=True):
        for inst in batch.state.insts:
            assert not {inst.p, inst.s} & set(batch.nodes)
            assert inst.p != inst.s


def test_the_master_is_last_and_large_groups_are_first():
    state = state_of(3, kind="drbd")
    found = planned(state)
    assert state.nodes[found[-1].nodes[-1]].master
    sizes = [len(batch.nodes) for batch in found[:-1]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_move_back_and_forth_is_none(make, some_node, some_inst):
    nodes = [some_node("a"), some_node("b"), some_node("c")]
    insts = [some_inst("i", 0, template="drbd", secondary=1), some_inst("j", 0)]
    state = load(make(nodes, insts)).state
    (batch,) = batches(state, [[0]], evacuate=True)
    moved = relocations(state, batch.state)
    assert [(inst.name, inst.p, inst.s) for inst in moved] == [
        ("i", 1, 2),
        ("j", 1, -1),
    ]
    (batch,) = batches(state, [[1]])
    assert relocations(state, batch.state) == []


def test_a_full_cluster_is_said_so(make, some_node, some_inst):
    insts = [some_inst("a", 0, 6000), some_inst("b", 1, 6000)]
    state = load(make([some_node("n0"), some_node("n1")], insts)).state
    with pytest.raises(NoCapacity, match="non-redundant"):
        batches(state, [[0], [1]])
    assert len(batches(state, [[0], [1]], ignore_loners=True)) == 2


def test_nodes_go_one_by_one_where_there_is_room_for_one(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1"), some_node("n2")]
    for mem, expected in ((4000, [(0, 1), (2,)]), (5000, [(0,), (1,), (2,)])):
        insts = [some_inst("a", 0, mem), some_inst("b", 1, mem)]
        found = batches(load(make(nodes, insts)).state, [[0, 1, 2]])
        assert [batch.nodes for batch in found] == expected


def test_an_instance_waits_only_where_its_disks_are(make, some_node, some_inst):
    insts = [some_inst("a", 0, reach=frozenset({0, 2}))]
    nodes = [some_node("n0"), some_node("n1"), some_node("n2")]
    (batch,) = batches(load(make(nodes, insts)).state, [[0]])
    assert batch.state.insts[0].p == 2


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.data"
    shape = sample.Shape(kind="drbd", nodes=4, instances=10, oddity=0.0)
    path.write_text(text.dump(sample.cluster(1, shape)))
    return path


def test_the_first_group_is_printed_line_by_line(cluster, capsys):
    assert hroller.main(["-t", str(cluster), "--one-step-only"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "'First Reboot Group'"
    assert all(line.startswith("node") for line in said[1:])


BAD = [
    (["-G", "none"], "Cannot find target group"),
    (["-O", "none"], "wrong node name(s) set as offline: none"),
    (["--node-tags", "none"], "Cannot create node graph"),
    (["-S", "/nowhere/at/all"], "cannot write"),
]


@pytest.mark.parametrize(("words", "why"), BAD)
def test_a_bad_request_is_one_sentence(words, why, cluster, capsys):
    assert hroller.main(["-t", str(cluster), *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert why in said
    assert len(said.splitlines()) <= 2


@pytest.mark.parametrize("noise", [b"\xff\xfe\x00", b"", b"a|b\n\nc\n", b"\n" * 9])
def test_noise_is_one_sentence(noise, tmp_path, capsys):
    path = tmp_path / "noise"
    path.write_bytes(noise)
    assert hroller.main(["-t", str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert len(said.splitlines()) <= 2


def test_one_master_is_needed(cluster, capsys):
    source = cluster.read_text()
    cluster.write_text(source.replace("|M|", "|N|"))
    assert hroller.main(["-t", str(cluster)]) == 1
    assert "No master node found" in capsys.readouterr().err
    assert hroller.main(["-t", str(cluster), "--force"]) == 0
    assert "Warning: No master node found" in capsys.readouterr().err
    cluster.write_text(source.replace("|N|uuid", "|M|uuid"))
    assert hroller.main(["-t", str(cluster), "--force"]) == 1
    assert "more than one master node: [" in capsys.readouterr().err
