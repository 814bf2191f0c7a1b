# SPDX-License-Identifier: BSD-2-Clause
"""The page on security names the test that attacks each claim: those are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "why" / "security.md"


def test_the_tests_that_the_page_names_are_there() -> None:
    named = re.findall(r"`(?!tests)((?:\w+/)+\w+\.py)`", PAGE.read_text())
    assert len(named) > 30
    missing = [one for one in named if not (ROOT / "tests" / one).exists()]
    assert missing == []
