# SPDX-License-Identifier: BSD-2-Clause
"""Power: nodes that nobody needs go, nodes that are needed come back."""

import sys
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import master
import rolling as parity

from moorage.cli.htools import hsqueeze
from moorage.htools import load
from moorage.htools.formats import text
from moorage.htools.policy import Spec
from moorage.htools.squeezing import (
    STANDBY_AUTO,
    can_leave,
    can_return,
    expand,
    has_room,
    probe,
    squeeze,
)

SIZE = Spec(1024, 1, 1024, 1, 1, 1)
oracle = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        not Path("/usr/bin/hsqueeze").exists(), reason="ganeti-htools is not installed"
    ),
]


class TestOracle:
    pytestmark = oracle

    @pytest.mark.parametrize("seed", [*range(1, 60), 5865])
    def test_hsqueeze_decides_the_same(self, seed, tmp_path):
        words, why = parity.differ("hsqueeze", seed, tmp_path)
        assert why == "", words

    def test_hsqueeze_submits_the_same(self, tmp_path):
        fleet = parity.cluster("hsqueeze", Random(10**9 + 1), 1)  # noqa: S311
        jobs = []
        for run in (parity.ours, parity.theirs):
            with master.Master(tmp_path / run.__name__, fleet) as there:
                status, said, _ = run("hsqueeze", [f"-L{there.path}", "-X"])
                jobs.append(
                    (status, said, [list(map(bare, job)) for job in there.jobs])
                )
        assert jobs[0] == jobs[1]
        assert len(jobs[0][2]) == 4


def bare(opcode):
    """Return an opcode without who asked for it, and when."""
    passing = ("comment", "reason", "priority", "depends")
    return {name: value for name, value in opcode.items() if name not in passing}


@pytest.fixture
def idle(make, some_node, some_inst):
    """A cluster of four nodes that needs two."""
    nodes = [some_node(f"n{at}", cpus=16.0) for at in range(4)]
    nodes[0] = nodes[0]._replace(master=True)
    return make(nodes, [some_inst(f"i{at}", at % 4, 512) for at in range(6)])


def test_nodes_go_while_there_is_room(idle):
    state = load(idle).state
    found = squeeze(state, probe(SIZE, 2.0))
    assert found is not None
    end = found.plan.end
    assert len(found.nodes) == 3
    assert all(end.nodes[at].offline for at in found.nodes)
    assert all(not end.nodes[inst.p].offline for inst in end.insts)
    assert has_room(end, probe(SIZE, 2.0))


def test_nobody_goes_if_no_room_is_left(idle):
    assert squeeze(load(idle).state, probe(SIZE, 7.0)) is None


def test_masters_secondaries_and_local_disks_stay(make, some_node, some_inst):
    nodes = [some_node(name) for name in "abcde"]
    nodes[0] = nodes[0]._replace(master=True)
    insts = [
        some_inst("mirrored", 1, template="drbd", secondary=2),
        some_inst("local", 3, template="plain"),
        some_inst("shared", 4),
    ]
    state = load(make(nodes, insts)).state
    assert [node.name for node in can_leave(state)] == ["e"]


def test_the_fewest_nodes_come_back(make, some_node, some_inst):
    nodes = [some_node(name, cpus=16.0) for name in "abcd"]
    nodes[1:] = [n._replace(offline=True, tags=(STANDBY_AUTO,)) for n in nodes[1:]]
    nodes[3] = nodes[3]._replace(tags=("broken",))
    insts = [some_inst(f"i{at}", 0, 1000) for at in range(7)]
    state = load(make(nodes, insts)).state
    assert [node.name for node in can_return(state)] == ["b", "c"]
    room = probe(SIZE, 3.0)
    assert not has_room(state, room)
    found = expand(state, room)
    assert found.suffices
    assert found.nodes == (1,)
    assert not expand(state, probe(SIZE, 7.9)).suffices


@pytest.fixture
def cluster(idle, tmp_path):
    path = tmp_path / "cluster.data"
    path.write_text(text.dump(idle))
    return path


def test_commands_and_states_are_written(cluster, tmp_path, capsys):
    script, saved = tmp_path / "go.sh", tmp_path / "saved"
    words = ["-t", str(cluster), f"-C{script}", "-S", str(saved)]
    assert hsqueeze.main(words) == 0
    said = capsys.readouterr()
    assert said.out.startswith("'Nodes to offline'\n")
    assert f"have been written to file '{script}'" in said.out
    assert script.read_text().startswith("#!/bin/sh")
    assert "  gnt-node power -f off n" in script.read_text()
    end = text.parse((tmp_path / "saved.squeezed").read_text())
    assert sum(node.offline for node in end.nodes) == 3
    assert not end.nodes[end.instances[0].primary].offline


BAD = [
    (["-X"], "Execution of commands possible only on LUXI"),
    (["-S", "/nowhere/at/all"], "cannot write"),
]


@pytest.mark.parametrize(("words", "why"), BAD)
def test_a_bad_request_is_one_sentence(words, why, cluster, capsys):
    assert hsqueeze.main(["-t", str(cluster), *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert why in said
    assert len(said.splitlines()) <= 2


@pytest.mark.parametrize("factor", ["x", "nan", "inf", "-1", "1e300", ""])
def test_a_bad_factor_is_one_sentence(factor, cluster, capsys):
    status = hsqueeze.main(["-t", str(cluster), f"--target-resources={factor}"])
    assert status == 1
    assert "is not a number from 0 up to 1000000000" in capsys.readouterr().err


@pytest.mark.parametrize("noise", [b"\xff\xfe\x00", b"", b"a|b\n\nc\n", b"\n" * 9])
def test_noise_is_one_sentence(noise, tmp_path, capsys):
    path = tmp_path / "noise"
    path.write_bytes(noise)
    status = hsqueeze.main(["-t", str(path)])
    said = capsys.readouterr().err
    assert status == (1 if said else 0)
    assert len(said.splitlines()) <= 2


def test_moves_come_before_the_power_goes(idle, tmp_path, capsys):
    with master.Master(tmp_path / "socket", idle) as there:
        assert hsqueeze.main([f"-L{there.path}", "-X"]) == 0
    kinds = [[opcode["OP_ID"] for opcode in job] for job in there.jobs]
    assert kinds[0] == ["OP_INSTANCE_MIGRATE"]
    assert kinds[-1] == ["OP_NODE_SET_PARAMS"] * 3 + ["OP_OOB_COMMAND"]
    assert kinds.count(["OP_TAGS_SET"]) == 3
    assert "Got job IDs 1" in capsys.readouterr().out


def test_after_a_job_that_failed_nothing_is_submitted(idle, tmp_path, capsys):
    with master.Master(tmp_path / "socket", idle, "error") as there:
        assert hsqueeze.main([f"-L{there.path}", "-X"]) == 1
    assert not any("OP_OOB_COMMAND" in str(job) for job in there.jobs)
    assert "not every job of the set succeeded" in capsys.readouterr().err


def test_without_a_standby_node_no_power_is_switched(
    make, some_node, some_inst, tmp_path
):
    full = make([some_node("a"), some_node("b")], [some_inst("i", 0, 7000)])
    words = ["-X", "--minimal-resources=60"]
    with master.Master(tmp_path / "socket", full) as there:
        assert hsqueeze.main([f"-L{there.path}", *words]) == 0
    assert "OP_OOB_COMMAND" not in str(there.jobs)
