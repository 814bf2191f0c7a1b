# SPDX-License-Identifier: BSD-2-Clause
"""Opcodes as Ganeti 3.0.2 sends them: every field, most of them asking for nothing."""

import json
from pathlib import Path

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

from moorage.api.ganeti_opcodes import plain
from moorage.errors import BadInput
from moorage.jobs import COMMON
from moorage.ops import OPERATIONS, parse

GANETI = json.loads((Path(__file__).parent / "data/opcodes-3.0.2.json").read_text())
"""The default of each field of each opcode."""
BOTH = sorted(GANETI.keys() & OPERATIONS.keys())
NEEDED = {
    "amount": 1,
    "changes": {},
    "command": "health",
    "disk": 0,
    "duration": 1.0,
    "instances": [{"instance_name": "web1"}],
    "node_names": ["node1"],
    "nodes": ["node1"],
    "output_fields": ["name"],
    "tags": ["a"],
}
"""What is asked for in a field that has no default; a text elsewhere."""


def sent(op_id: str) -> dict:
    """Return an opcode as Ganeti sends it when nobody asks for more than is needed."""
    needed = {
        one.name: NEEDED.get(one.name, "x")
        for one in fields(OPERATIONS[op_id])
        if one.default is NODEFAULT and one.default_factory is NODEFAULT
    }
    return {"OP_ID": op_id, **GANETI[op_id], **needed}


@pytest.mark.parametrize("op_id", BOTH)
def test_what_asks_for_nothing_is_taken(op_id):
    assert parse(plain(sent(op_id))).op_id == op_id


@pytest.mark.parametrize("op_id", BOTH)
def test_what_asks_for_something_in_a_field_that_is_missing_is_refused(op_id):
    known = set(OPERATIONS[op_id].__struct_fields__) | COMMON
    for name in GANETI[op_id].keys() - known:
        if name.endswith(("_uuid", "_uuids")):
            continue
        with pytest.raises(BadInput, match=name):
            parse(plain(sent(op_id) | {name: "something"}))


def test_a_uuid_means_the_same_as_the_name():
    op = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1"}
    told = plain(op | {"instance_uuid": "1234"})
    assert told == {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "1234"}


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ([{"size": "10G"}, {"size": 64}], [{"size": 10240}, {"size": 64}]),
        ([["add", "-1", {"size": "1001"}]], [["add", "-1", {"size": 1004}]]),
        ([0, 1], [0, 1]),
        ("nonsense", "nonsense"),
    ],
)
def test_a_size_may_have_a_unit(sent, taken):
    op = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1", "disks": sent}
    assert plain(op)["disks"] == taken


def test_a_size_that_is_none_is_refused():
    op = {"OP_ID": "OP_INSTANCE_CREATE", "disks": [{"size": "much"}]}
    with pytest.raises(BadInput, match="much"):
        plain(op)


@pytest.mark.parametrize(
    ("op_id", "field"),
    [
        ("OP_DISK_ADD", "size"),
        ("OP_DISK_GROW", "amount"),
        ("OP_INSTANCE_GROW_DISK", "amount"),
    ],
)
def test_every_size_may_have_a_unit(op_id: str, field: str) -> None:
    assert plain({"OP_ID": op_id, field: "1.5g"})[field] == 1536
    assert plain({"OP_ID": op_id, field: 7})[field] == 7
    with pytest.raises(BadInput, match="size"):
        plain({"OP_ID": op_id, field: "much"})
