# SPDX-License-Identifier: BSD-2-Clause
"""Switches of starts, stops and repairs, as opcodes."""

from typing import Any

import pytest

START, STOP = "OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("start --no-remember", {"OP_ID": START, "no_remember": True}),
        ("startup --ignore-offline", {"OP_ID": START, "ignore_offline_nodes": True}),
        (
            "startup -B memory=2G,vcpus=3 -H kvm:acpi=false",
            {
                "OP_ID": START,
                "beparams": {"minmem": 2048, "maxmem": 2048, "vcpus": 3},
                "hvparams": {"acpi": "false"},
            },
        ),
        ("stop --no-remember -m 5", {"OP_ID": STOP, "no_remember": True, "timeout": 5}),
        ("shutdown -f", {"OP_ID": STOP, "force": True}),
        ("shutdown --ignore-offline", {"OP_ID": STOP, "ignore_offline_nodes": True}),
    ],
)
def test_starts_and_stops(
    master: Any, typed: Any, line: str, fields: dict[str, Any]
) -> None:
    command, *options = line.split()
    screen = typed(f"gnt-instance {command} {' '.join(options)} web1")
    assert screen.status == 0, screen.err
    assert master.ops == [{"instance_name": "web1", **fields}]


def test_disks_of_any_size_are_activated(master: Any, typed: Any) -> None:
    master.result = [["node1", "disk/0", "/dev/x"]]
    screen = typed("gnt-instance activate-disks --ignore-size --wait-for-sync web1")
    assert screen.out == "node1:disk/0:/dev/x\n"
    (op,) = master.ops
    assert op["ignore_size"] is True


def test_repaired_sizes_are_shown(master: Any, typed: Any) -> None:
    master.result = [["web1", 1, "size", 200]]
    screen = typed("gnt-cluster repair-disk-sizes web1 web2")
    assert screen.out == "web1: disk/1: size is 200 MiB\n"
    (op,) = master.ops
    assert op == {
        "OP_ID": "OP_CLUSTER_REPAIR_DISK_SIZES",
        "instances": ["web1", "web2"],
    }
    master.result = []
    assert typed("gnt-cluster repair-disk-sizes").out == ""
