# SPDX-License-Identifier: BSD-2-Clause
"""gnt-disk: opcodes that go out, screens that come back."""

import json
from typing import Any

import pytest
import yaml

from moorage.errors import Exists

TITLES = {
    "name": ("Name", "text"),
    "uuid": ("UUID", "text"),
    "dev_type": ("Template", "text"),
    "size": ("Size", "unit"),
    "status": ("Status", "text"),
    "instance": ("Instance", "text"),
    "tags": ("Tags", "other"),
}
DATA1 = {
    "name": "data1",
    "uuid": "4f2c1b7e-0000-4000-8000-000000000001",
    "dev_type": "ext",
    "size": 10240,
    "status": "attached",
    "instance": "web1",
    "tags": ["a", "b"],
    "serial_no": 3,
    "ctime": 86400.5,
    "mtime": 86401.5,
    "logical_id": ["san", "4f2c.ext.disk0"],
    "provider": "san",
    "params": {"provider": "san", "pool": "fast"},
    "presets": {"total_iops_sec": 500},
    "mode": "rw",
    "iv_name": "disk/1",
    "nodes": [],
    "last_node": "node2",
    "epoch": 4,
    "quarantine": None,
}
SPARE = {
    **DATA1,
    "name": None,
    "uuid": "4f2c1b7e-0000-4000-8000-000000000002",
    "size": 512,
    "status": "detached",
    "presets": {},
    "instance": None,
    "tags": [],
    "iv_name": None,
    "quarantine": "node2 may still write",
}


def query(_what: str, fields: list[str], _wanted: Any) -> dict[str, Any]:
    """Answer as the master does; a missing value has status 3."""
    known = [(field, *TITLES.get(field, (field, "other"))) for field in fields]
    columns = [
        {"name": n, "title": t, "kind": k if n in DATA1 else "unknown", "doc": n}
        for n, t, k in known
    ]
    rows = [
        [
            [1 if f not in disk else 3 if disk[f] is None else 0, disk.get(f)]
            for f in fields
        ]
        for disk in (DATA1, SPARE)
    ]
    return {"fields": columns, "data": rows}


@pytest.fixture(autouse=True)
def _disks(master) -> None:
    master.answers["Query"] = query


def test_list(typed, same_screen) -> None:
    screen = typed("gnt-disk list")
    assert (screen.status, screen.err) == (0, "")
    same_screen("gnt-disk-list", screen.out)


def test_list_for_programs(typed) -> None:
    line = "gnt-disk list --no-headers --separator=: -o name,size,tags -v"
    assert typed(line).out == "data1:10240:a,b\n(unavail):512:\n"


def test_list_of_an_unknown_field(typed) -> None:
    screen = typed("gnt-disk list -o name,colour --no-headers")
    assert (screen.status, screen.out) == (14, "data1 ??\n-     ??\n")
    assert screen.err == "Warning: Queried for unknown fields colour\n"


def test_list_with_names_and_filters(master, typed) -> None:
    typed("gnt-disk list data1")
    typed("gnt-disk list --filter 'status == \"detached\"' -o +tags")
    typed("gnt-disk list --filter='size > 5'")
    (_, named), (_, filtered), (_, tied) = master.calls
    assert named[2] == ["|", ["==", "name", "data1"], ["==", "uuid", "data1"]]
    assert filtered[1][-1] == "tags"
    assert filtered[2] == ["==", "status", "detached"]
    assert tied[2] == [">", "size", 5]


def test_list_as_json(typed) -> None:
    assert json.loads(typed("gnt-disk list --json -o name,size,instance").out) == [
        {"name": "data1", "size": 10240, "instance": "web1"},
        {"name": None, "size": 512, "instance": None},
    ]


def test_list_fields(master, typed, same_screen) -> None:
    master.answers["QueryFields"] = {
        "fields": [
            {"name": "name", "title": "Name", "kind": "text", "doc": "Name of it"},
            {"name": "size", "title": "Size", "kind": "unit", "doc": "Size"},
        ]
    }
    same_screen("gnt-disk-list-fields", typed("gnt-disk list-fields").out)
    typed("gnt-disk list-fields size")
    assert [args for _, args in master.calls] == [["disk", None], ["disk", ["size"]]]


def test_info(typed, same_screen) -> None:
    screen = typed("gnt-disk info")
    same_screen("gnt-disk-info", screen.out)
    first, second = yaml.safe_load(screen.out)
    assert first["logical_id"] == ["san", "4f2c.ext.disk0"]
    assert first["Attached to"] == "web1 (disk/1)"
    assert first["Presets"] == {"total_iops_sec": 500}
    assert "Presets" not in second
    assert second["Quarantine"] == "node2 may still write"


def test_add(master, typed) -> None:
    master.result = "uuid-9"
    line = (
        r"gnt-disk add -t ext -p san -s 1001 -D 'pool=fast,trim,path=a\,b' -D x=1 "
        "-n node2 --tags a,b --mode ro --access userspace data9"
    )
    assert typed(line).out == "Added disk data9 (uuid-9)\n"
    assert master.ops == [
        {
            "OP_ID": "OP_DISK_ADD",
            "name": "data9",
            "disk_template": "ext",
            "provider": "san",
            "size": 1004,
            "access": "userspace",
            "mode": "ro",
            "node": "node2",
            "tags": ["a", "b"],
            "params": {"pool": "fast", "trim": "True", "path": "a,b", "x": "1"},
        }
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("add -t ext -s 1G --name a b", "a disk has one name"),
        ("add -t ext -s 1G -D a=1,a=2 b", "the key 'a' stands twice"),
        ("add -t ext -s 1G --mode wo b", "--mode is one of rw, ro, not 'wo'"),
        ("modify x", "nothing to change"),
        ("grow x lots", "'lots' is not a size"),
    ],
)
def test_bad_input_goes_nowhere(master, typed, line: str, sentence: str) -> None:
    screen = typed(f"gnt-disk {line}")
    assert (screen.status, screen.out) == (1, "")
    assert sentence in screen.err
    assert master.calls == []


CASES = [
    (
        "attach data1 web1",
        {"OP_ID": "OP_DISK_ATTACH", "disk": "data1", "instance_name": "web1"},
        "Attached disk data1 to instance web1\n",
    ),
    (
        "attach data1 web1 --index 0",
        {
            "OP_ID": "OP_DISK_ATTACH",
            "disk": "data1",
            "instance_name": "web1",
            "index": 0,
        },
        "Attached disk data1 to instance web1\n",
    ),
    (
        "detach data1",
        {"OP_ID": "OP_DISK_DETACH", "disk": "data1"},
        "Detached disk data1\n",
    ),
    (
        "grow data1 5G",
        {"OP_ID": "OP_DISK_GROW", "disk": "data1", "amount": 5120},
        "Grew disk data1 by 5.0G\n",
    ),
    (
        "grow data1 20G --absolute",
        {"OP_ID": "OP_DISK_GROW", "disk": "data1", "amount": 20480, "absolute": True},
        "Grew disk data1 to 20.0G\n",
    ),
    (
        "rename data1 data2",
        {"OP_ID": "OP_DISK_RENAME", "disk": "data1", "new_name": "data2"},
        "Renamed disk data1 to data2\n",
    ),
    (
        "snapshot data1 --name monday",
        {"OP_ID": "OP_DISK_SNAPSHOT", "disk": "data1", "new_name": "monday"},
        "Made a snapshot of disk data1: disk uuid-9\n",
    ),
    (
        "remove -f data1",
        {"OP_ID": "OP_DISK_REMOVE", "disk": "data1"},
        "Removed disk data1\n",
    ),
    (
        "modify --mode ro -D a=1,-b data1",
        {
            "OP_ID": "OP_DISK_SET_PARAMS",
            "disk": "data1",
            "mode": "ro",
            "params": {"a": "1", "b": "default"},
        },
        "Modified disk data1\n",
    ),
]


@pytest.mark.parametrize(("line", "op", "out"), CASES)
def test_verbs(master, typed, line: str, op: dict[str, Any], out: str) -> None:
    master.result = "uuid-9" if line.startswith("snapshot") else None
    assert typed(f"gnt-disk {line}") == (0, out, "")
    assert master.ops == [op]


def test_attach_says_in_which_slot(master, typed) -> None:
    master.result = [["disk/1", "attach:size=1024,mode=rw"], ["disk/1", "hotplug:done"]]
    out = typed("gnt-disk attach data1 web1").out
    assert out == "Attached disk data1 to instance web1 as disk/1\n"


def test_a_refusal_is_shown(master, typed) -> None:
    master.result = Exists("disk data1 is attached to instance web1 on node1")
    assert "attached to instance web1" in typed("gnt-disk attach data1 web2").err
