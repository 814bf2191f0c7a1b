# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup: what its options mean, and which of them contradict."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    "option", ["--start", "--net 0:mac=auto", "--tags a", "-o debian", "-I hail"]
)
def test_options_of_instances_are_refused_where_a_disk_is_imported(
    master: Any, typed: Any, option: str
) -> None:
    screen = typed(f"gnt-backup import --disk-only --src-dir disk+a {option} b")
    assert screen.status == 1
    assert "is for instances, and --disk-only imports a disk" in screen.err
    assert master.ops == []


def test_a_disk_is_imported_alone(master: Any, typed: Any) -> None:
    master.result = "uuid-1"
    line = "gnt-backup import --disk-only --ignore-capacity --src-dir disk+a -t file b"
    screen = typed(line)
    assert screen.out == "Imported disk b (uuid-1)\n"
    (op,) = master.ops
    assert op == {
        "OP_ID": "OP_DISK_IMPORT",
        "name": "b",
        "params": {},
        "disk_template": "file",
        "src_path": "disk+a",
        "ignore_capacity": True,
    }


def test_a_disk_is_moved_to_a_pool_that_has_a_name(master: Any, typed: Any) -> None:
    screen = typed("gnt-disk move --pool= data1")
    assert "to which storage pool?" in screen.err
    assert master.ops == []
