# SPDX-License-Identifier: BSD-2-Clause
"""The exit status of gnt-os: what monitoring goes by."""

from typing import Any

import pytest

_STATE = ([20], False, False)
GOOD = ["tiny", True, [], [], {"node1": [["/srv/os/tiny", True, ""]]}, *_STATE]
BAD = ["bad", False, [], [], {"node1": [["/srv/os/bad", False, "no create"]]}, *_STATE]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("gnt-os diagnose", 1),
        ("gnt-os diagnose --json", 1),
        ("gnt-os diagnose bad", 1),
        ("gnt-os diagnose tiny", 0),
        ("gnt-os list", 0),
    ],
)
def test_an_invalid_os_is_an_error_of_its_diagnosis(
    master: Any, typed: Any, line: str, status: int
) -> None:
    master.result = [GOOD, BAD]
    assert typed(line).status == status


@pytest.mark.parametrize("verb", ["list", "diagnose"])
def test_a_name_that_no_node_knows_is_an_error(
    master: Any, typed: Any, verb: str
) -> None:
    master.result = [GOOD, BAD]
    done = typed(f"gnt-os {verb} nosuch")
    assert done.status == 1
    assert "no node has an OS 'nosuch': there is tiny, bad" in done.err
