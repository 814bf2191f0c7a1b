# SPDX-License-Identifier: BSD-2-Clause
"""gnt-os and gnt-debug."""

from pathlib import Path

SYSTEMS = [
    ["tiny", True, ["small", "big"], [], {"node1": [["/srv/os/tiny", True, ""]]}],
    ["bare", True, [], [], {"node1": [["/srv/os/bare", True, ""]], "node2": []}],
    ["bad", False, [], [], {"node1": [["/srv/os/bad", False, "no create"]]}],
]


def test_os_list(master, typed) -> None:
    master.result = [[*one, [20], False, False] for one in SYSTEMS]
    assert typed("gnt-os list").out == "Name\ntiny+small\ntiny+big\nbare\n"
    assert typed("gnt-os list --no-headers bare").out == "bare\n"


def test_os_diagnose(master, typed) -> None:
    master.result = [[*one, [20], False, False] for one in SYSTEMS]
    assert typed("gnt-os diagnose").out == (
        "OS: tiny [global status: valid]\n"
        "  Variants: [small, big]\n"
        "  Node: node1, status: VALID (path: /srv/os/tiny)\n"
        "\n"
        "OS: bare [global status: valid]\n"
        "  Node: node1, status: VALID (path: /srv/os/bare)\n"
        "  Node: node2, status: OS not found\n"
        "\n"
        "OS: bad [global status: invalid]\n"
        "  Node: node1, status: INVALID - no create (path: /srv/os/bad)\n"
        "\n"
    )


def test_debug_locks(master, typed) -> None:
    titles = {"name": "Name", "mode": "Mode", "owner": "Owner", "pending": "Pending"}
    master.answers["Query"] = lambda _what, fields, _wanted: {
        "fields": [
            {"name": f, "title": titles[f], "kind": "other", "doc": ""} for f in fields
        ],
        "data": [[[0, "disk/d1"], [0, "exclusive"], [0, ["job4"]], [0, ["job5"]]]],
    }
    assert typed("gnt-debug locks").out == (
        "Name    Mode      Owner Pending\ndisk/d1 exclusive job4  job5\n"
    )


def test_debug_delay(master, typed) -> None:
    typed("gnt-debug delay --no-master -n n1 -n n2 0.5")
    assert master.ops == [
        {
            "OP_ID": "OP_TEST_DELAY",
            "duration": 0.5,
            "on_master": False,
            "on_nodes": ["n1", "n2"],
        }
    ]
    assert "'x' is not a number of seconds" in typed("gnt-debug delay x").err


def test_debug_submit_job(master, typed, tmp_path: Path) -> None:
    file = tmp_path / "ops.json"
    file.write_text('[{"OP_ID": "OP_TEST_DELAY", "duration": 0}]')
    assert typed(f"gnt-debug submit-job {file}").status == 0
    assert master.ops == [{"OP_ID": "OP_TEST_DELAY", "duration": 0}]
    file.write_text("{")
    assert "is not JSON" in typed(f"gnt-debug submit-job {file}").err
    file.write_text("{}")
    assert "is not a list of opcodes" in typed(f"gnt-debug submit-job {file}").err
    assert "cannot be read" in typed("gnt-debug submit-job /nonexistent").err
