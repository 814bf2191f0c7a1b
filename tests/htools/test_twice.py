# SPDX-License-Identifier: BSD-2-Clause
"""Keys and names that stand twice: read as Ganeti reads them, with a warning."""

import json

import pytest

from moorage.cli.htools import hail, hinfo
from moorage.htools import load, sample
from moorage.htools.formats import iallocator, rapi, text
from moorage.htools.formats.jsontext import parse


@pytest.fixture
def fleet():
    shape = sample.Shape(kind="drbd", nodes=4, instances=10, oddity=0.0)
    return sample.cluster(1, shape)


def answered(tmp_path, capsys, message: str):
    """Return hail's answer to a message, and its warnings."""
    path = tmp_path / "message"
    path.write_text(message)
    assert hail.main([str(path)]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


@pytest.mark.parametrize(
    ("twice", "success"),
    [
        ('"memory": 512, "memory": 99999', True),
        ('"memory": 99999, "memory": 512', False),
    ],
)
def test_of_a_repeated_key_the_first_counts(twice, success, asked, tmp_path, capsys):
    message = json.dumps(asked()).replace('"memory": 512', twice)
    answer, warned = answered(tmp_path, capsys, message)
    assert answer["success"] is success
    assert f"  - {tmp_path}/message: 'memory' occurs twice in one object\n" in warned


def test_two_nodes_of_one_name_are_two_and_the_last_is_meant(asked, tmp_path, capsys):
    message = asked()
    off = json.dumps(message["nodes"]["n1"] | {"offline": True})
    source = json.dumps(message).replace('"nodes": {', f'"nodes": {{"n1": {off}, ')
    found = iallocator.parse(source, "f").fleet
    assert [(one.name, one.offline) for one in found.nodes] == [
        ("n1", True), ("n1", False), ("n2", False)
    ]  # fmt: skip
    inst = message["request"] | {"nodes": ["n1"], "admin_state": "up"}
    source = source.replace('"instances": {', f'"instances": {{"i": {json.dumps(inst)}')
    found = iallocator.parse(source, "f").fleet
    assert found.instances[0].primary == 1
    answer, warned = answered(tmp_path, capsys, source)
    assert answer["success"]
    assert "'n1' occurs twice" in warned


def test_names_that_stand_twice_in_a_text_file_are_both_read(fleet, tmp_path, capsys):
    again = (*fleet.nodes, fleet.nodes[1])
    people = (*fleet.instances, fleet.instances[0]._replace(mem=1))
    source = text.dump(fleet.replaced(nodes=again, instances=people))
    found = text.parse(source, "c.data")
    assert len(found.nodes) == len(again)
    assert len(found.instances) == len(people)
    assert {inst.primary for inst in found.instances}.isdisjoint({1})
    told = load(found).warnings
    assert told[0].startswith(
        "c.data: line 7, column 1: node 'node001.example.com' occ"
    )
    path = tmp_path / "c.data"
    path.write_text(source)
    assert hinfo.main(["-t", str(path)]) == 0
    said = capsys.readouterr()
    assert "occurs twice (first on line 4)" in said.err
    assert "Loaded 5 nodes, 11 instances" in said.out


def test_answers_of_a_master_may_hold_a_name_twice(asked):
    row = {"uuid": "u", "name": "g", "alloc_policy": "preferred", "tags": []}
    groups = [row | {"ipolicy": asked()["nodegroups"]["u"]["ipolicy"]}] * 2
    info = {
        "tags": [], "ipolicy": groups[0]["ipolicy"], "master": "m",
        "default_hypervisor": "kvm",
    }  # fmt: skip
    answers = {"groups": groups, "nodes": [], "instances": [], "info": info}
    found = rapi.parse({name: json.dumps(value) for name, value in answers.items()})
    assert len(found.groups) == 2
    assert found.warnings[0].endswith("'u' occurs twice")


def test_a_repeated_key_keeps_the_order_of_names():
    value = parse('{"b": {}, "a": {"x": 1, "x": 2}, "b": {}}', "f")
    assert [key for key, _ in value.members()] == ["b", "a", "b"]
    assert value["a"]["x"].integer() == 1
    assert value.source.warnings == (
        "f: 'x' occurs twice in one object",
        "f: 'b' occurs twice in one object",
    )
