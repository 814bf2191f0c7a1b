# SPDX-License-Identifier: BSD-2-Clause
"""What simulated nodes do not care about is typed at real guests, too."""

import re
from pathlib import Path

import pytest

REAL = Path(__file__).parents[1] / "real"
DAILY = (
    "gnt-disk attach",
    "gnt-disk detach",
    "gnt-instance failover",
    "gnt-instance migrate",
    "gnt-instance modify -B",
    "gnt-instance modify -H",
    "gnt-instance reboot",
    "gnt-instance shutdown",
    "gnt-instance startup",
)


@pytest.mark.parametrize("line", DAILY)
def test_daily_verbs_are_typed_at_real_guests(line: str) -> None:
    """A reset that applied nothing was green on simulated nodes for months."""
    typed = re.compile(rf"{line}(?![\w-])".replace("modify -", "modify.* -"))
    assert any(typed.search(path.read_text()) for path in REAL.glob("test_*.py"))
