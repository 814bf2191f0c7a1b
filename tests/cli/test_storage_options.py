# SPDX-License-Identifier: BSD-2-Clause
"""Options of the storage commands: what they mean, and which contradict."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    "option",
    [
        *("--start", "--net 0:mac=auto", "--tags a", "-o debian", "-I hail", "-g g1"),
        *("--os-parameters-private a=b", "--os-parameters-secret a=b"),
        "--no-conflicts-check",
    ],
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


def test_an_imported_instance_need_not_wait_for_its_mirrors(
    master: Any, typed: Any
) -> None:
    assert typed("gnt-backup import --no-wait-for-sync web1").status == 0
    assert master.ops[0]["wait_for_sync"] is False


def test_a_disk_is_moved_to_a_pool_that_has_a_name(master: Any, typed: Any) -> None:
    screen = typed("gnt-disk move --pool= data1")
    assert "to which storage pool?" in screen.err
    assert master.ops == []


def test_a_report_that_nobody_could_keep_is_refused_before_the_checks(
    master: Any, typed: Any
) -> None:
    screen = typed("gnt-storage certify --report /nosuch/dir/x san")
    assert "no report can be written to /nosuch/dir/x" in screen.err
    assert master.ops == []


def test_a_pool_without_a_provider_is_told_in_the_words_that_were_typed(
    master: Any, typed: Any
) -> None:
    screen = typed("gnt-cluster modify --add-pool nas1 ''")
    assert "not of 'nas1' and ''" in screen.err
    assert master.ops == []
