# SPDX-License-Identifier: BSD-2-Clause
"""The programs as people run them: output, exit status, errors."""

import json
from importlib import import_module

import pytest

from moorage.htools import sample
from moorage.htools.formats import text

PROGRAMS = ("hbal", "hspace", "hcheck", "hinfo")


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.data"
    shape = sample.Shape(kind="drbd", nodes=4, instances=10, oddity=0.0)
    path.write_text(text.dump(sample.cluster(1, shape)))
    return path


def run(program, *words):
    return import_module(f"moorage.cli.htools.{program}").main([str(w) for w in words])


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("noise", [b"\xff\xfe\x00", b"", b"a|b\n\nc\n", b"\n" * 9])
def test_bad_input_is_one_sentence_and_status_one(program, noise, tmp_path, capsys):
    path = tmp_path / "noise"
    path.write_bytes(noise)
    status = run(program, "-t", path)
    said = capsys.readouterr()
    if status:
        assert status == 1
        assert said.err.startswith("Error: ")
        assert "line " in said.err
        assert len(said.err.splitlines()) <= 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_missing_file_is_one_sentence(program, tmp_path, capsys):
    assert run(program, "-t", tmp_path / "none") == 1
    assert "cannot read" in capsys.readouterr().err


def test_a_defect_of_ours_shows_no_trace(cluster, monkeypatch, capsys):
    """As the other programs say it."""

    def broken(*_args):
        raise KeyError("nonsense")

    monkeypatch.delenv("MOORAGE_DEBUG", raising=False)
    monkeypatch.setattr("moorage.cli.htools.work.hinfo.run", broken)
    assert run("hinfo", "-t", cluster) == 1
    assert capsys.readouterr().err == (
        "Failure: unhandled error in the command line:\nKeyError: 'nonsense'\n"
        "hint: MOORAGE_DEBUG=1 shows where; please report it\n"
    )
    monkeypatch.setenv("MOORAGE_DEBUG", "1")
    with pytest.raises(KeyError):
        run("hinfo", "-t", cluster)


def test_hbal_prints_steps_and_commands(cluster, capsys):
    assert run("hbal", "-t", cluster, "-C", "--no-capacity-checks") == 0
    said = capsys.readouterr().out
    assert "Cluster score improved from" in said
    assert "  echo jobset 1," in said


def test_hbal_writes_a_script(cluster, tmp_path, capsys):
    script = tmp_path / "plan.sh"
    assert run("hbal", "-t", cluster, f"-C{script}", "-S", tmp_path / "saved") == 0
    assert script.read_text().startswith("#!/bin/sh")
    assert text.parse((tmp_path / "saved.balanced").read_text())
    assert "have been written to file" in capsys.readouterr().out


@pytest.mark.requirement("S2-07")
def test_hcheck_reports_who_cannot_be_lost(
    tmp_path, capsys, make, some_node, some_inst
):
    path = tmp_path / "c.data"
    insts = [some_inst("a", 0, 6000), some_inst("b", 1, 6000)]
    path.write_text(text.dump(make([some_node("n0"), some_node("n1")], insts)))
    assert run("hcheck", "-t", path, "--machine-readable") == 1
    assert "HCHECK_INIT_CLUSTER_GN1_FAIL=2" in capsys.readouterr().out
    assert run("hcheck", "-t", path, "--no-simulation") == 0
    assert "Nodes not directly evacuateable: 2" in capsys.readouterr().out


def test_hcheck_proves_survival(cluster, capsys):
    status = run("hcheck", "-t", cluster, "--survive=json")
    found = json.loads(capsys.readouterr().out)
    assert len(found["nodes"]) == 4
    assert status == (0 if all(one["survives"] for one in found["nodes"]) else 1)


def test_hspace_prints_keys(cluster, capsys):
    assert run("hspace", "-t", cluster, "--machine-readable", "-l", "2") == 0
    said = capsys.readouterr().out
    assert "HTS_FIN_INST_CNT=" in said
    assert said.endswith("HTS_OK=1\n")


def test_hinfo_describes(cluster, capsys):
    assert run("hinfo", "-t", cluster, "-p") == 0
    assert "Cluster score:" in capsys.readouterr().out


def test_rapi_answers_in_files_are_a_source(tmp_path, capsys):
    assert run("hinfo", "-m", f"file://{tmp_path}") == 1
    assert "groups.json" in capsys.readouterr().err


def test_hail_explains(tmp_path, capsys, make, some_node, some_inst):
    del make, some_node, some_inst
    message = tmp_path / "m.json"
    message.write_text("{}")
    assert run("hail", message) == 1
    assert "lacks 'nodegroups'" in capsys.readouterr().err
