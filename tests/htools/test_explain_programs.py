# SPDX-License-Identifier: BSD-2-Clause
"""The programs explain themselves, and change nothing by it."""

import json
import re
from importlib import import_module

import pytest

from moorage.htools import Group, load, sample
from moorage.htools.explain.n1_report import troubles
from moorage.htools.formats import text


@pytest.fixture
def run(tmp_path, capsys):
    def ran(program, fleet, *words):
        path = tmp_path / "cluster.data"
        path.write_text(text.dump(fleet))
        main = import_module(f"moorage.cli.htools.{program}").main
        status = main(["-t", str(path), *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return ran


def _clusters(program=""):
    """Yield clusters, fewer for hspace, which fills them up."""
    for seed in range(2 if program == "hspace" else 6):
        shape = sample.Shape("mixed", 4, 10, fill=0.8, oddity=0.1, uneven=True)
        yield sample.cluster(seed, shape)


@pytest.mark.parametrize("program", ["hcheck", "hspace", "hbal"])
def test_explaining_adds_to_the_output_and_changes_nothing(program, run):
    added = 0
    for fleet in _clusters(program):
        plain, told = run(program, fleet), run(program, fleet, "--explain")
        assert told[0] == plain[0]
        assert told[1].startswith(plain[1])
        added += len(told[1]) > len(plain[1])
    assert added > 1


@pytest.mark.parametrize("program", ["hcheck", "hspace"])
def test_machines_read_the_same_keys_with_the_reasons_beside(program, run):
    for fleet in _clusters(program):
        plain = run(program, fleet, "--machine-readable")
        told = run(program, fleet, "--machine-readable", "--explain")
        assert told[:2] == plain[:2]
        assert len(told[2]) >= len(plain[2])


def test_each_counter_of_hcheck_is_accounted_for(run):
    for fleet in _clusters():
        found = troubles(load(fleet).state)
        out = run("hcheck", fleet, "--machine-readable", "--no-simulation")[1]
        for key in ("N1_FAIL", "OFFLINE_PRI", "OFFLINE_SEC", "GN1_FAIL"):
            number = re.search(rf"HCHECK_INIT_CLUSTER_{key}=(\d+)", out)
            mine = [one for one in found if one.counter == key.lower()]
            assert number is not None
            assert int(number[1]) == len(mine)


def test_hcheck_names_who_needs_the_memory(make, some_node, some_inst, run):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [
        some_inst("a", 0, 3000, template="drbd", secondary=1),
        some_inst("b", 0, 2000, template="drbd", secondary=1),
        some_inst("c", 1, 6000, template="drbd", secondary=0),
    ]
    out = run("hcheck", make(nodes, insts), "--explain", "--no-simulation")[1]
    assert (
        "      n1: 2192 MiB are free, 5000 MiB are reserved for the loss of n0 "
        "(a 3000 MiB, b 2000 MiB)"
    ) in out
    assert "      n0: its loss strands a" in out


def test_hspace_says_why_not_one_more(make, some_node, run):
    fleet = make([some_node("n0", cpus=1.0), some_node("n1", cpus=1.0)], [])
    words = ["--disk-template", "ext", "--standard-alloc", "1024,128,1"]
    out = run("hspace", fleet, "--explain", *words)[1]
    assert out.splitlines()[-3:] == [
        "Standard: why not one more of MEM 128, DSK 1024, CPU 1",
        "  - n0, n1: cpu (asked 1, used 4, limit 4, ratio 4)",
        "  - it fits with 1 more processor on n0",
    ]


def test_hspace_says_why_it_places_nothing(make, some_node, some_inst, run):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [
        some_inst("a", 0, 5000, template="drbd", secondary=1),
        some_inst("c", 1, 6000, template="drbd", secondary=0),
    ]
    out = run("hspace", make(nodes, insts), "--explain")[1]
    assert "n1: 2192 MiB are free, 5000 MiB are reserved for the loss of n0" in out


def _spec(spec):
    names = ("memory-size", "cpu-count", "disk-size", "disk-count")
    values = (spec.memory, spec.cpus, spec.disk, spec.disks)
    more = {"nic-count": spec.nics, "spindle-use": spec.spindles}
    return dict(zip(names, values, strict=True)) | more


def _message(group, mem):
    """Return a message to hail: one node of 8 GiB, and a newcomer."""
    policy = group.policy
    node = {"group": "uuid-1", "offline": False, "drained": False, "tags": []}
    node |= {"ndparams": {"exclusive_storage": False, "spindle_count": 1}}
    node |= {"total_memory": 8192, "reserved_memory": 0, "free_memory": 8192}
    node |= {"total_disk": 9999, "free_disk": 9999, "total_cpus": 8}
    node |= {"reserved_cpus": 0, "free_spindles": 0}
    asked = {"type": "allocate", "name": "new", "required_nodes": 1, "memory": mem}
    asked |= {"disk_space_total": 1024, "disks": [{"size": 1024}], "vcpus": 1}
    asked |= {"tags": [], "disk_template": "ext", "spindle_use": 1, "nics": []}
    minmax = [{"min": _spec(a), "max": _spec(b)} for a, b in policy.ranges]
    rules = {"std": _spec(policy.standard), "minmax": minmax}
    rules |= {"disk-templates": list(policy.templates)}
    rules |= {"vcpu-ratio": 4.0, "spindle-ratio": 32.0}
    groups = {"uuid-1": {"name": "default", "alloc_policy": "preferred"}}
    groups["uuid-1"] |= {"networks": [], "tags": [], "ipolicy": rules}
    return {
        "cluster_tags": [],
        "enabled_hypervisors": ["fake"],
        "nodegroups": groups,
        "nodes": {"n0": node},
        "instances": {},
        "request": asked,
    }


@pytest.mark.parametrize("mem", [1024, 9000])
def test_hail_explains_beside_its_answer(tmp_path, capsys, mem):
    path = tmp_path / "message.json"
    path.write_text(json.dumps(_message(Group("default", "uuid-1"), mem)))
    hail = import_module("moorage.cli.htools.hail").main
    answers = []
    for words in ([], ["--explain"]):
        assert hail([*words, "--no-capacity-checks", str(path)]) == 0
        said = capsys.readouterr()
        answers.append(json.loads(said.out))
    why = answers[1].pop("explanation")
    assert answers[0] == answers[1]
    if mem == 1024:
        assert why == {"refusals": [], "change": None}
        return
    assert [one["constraint"] for one in why["refusals"]] == ["memory"]
    assert why["change"]["parts"] == [
        {"what": "memory", "before": 9000, "after": 8191, "disk": None}
    ]
    assert "n0: memory (asked 9000 MiB, unallocated 8192 MiB)" in said.err
    assert "it fits with 809 MiB less memory" in said.err
