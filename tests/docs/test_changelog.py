# SPDX-License-Identifier: BSD-2-Clause
"""The changelog has the form that it names, and announces what calls changed."""

import re
from pathlib import Path

import pytest

from moorage import __version__

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text()
VERSION = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)
HEADINGS = ["Calls that changed", "Added", "Changed", "Fixed", "Removed", "Security"]


def sections():
    """Return the text of each version that was cut."""
    parts = VERSION.split(TEXT)
    return dict(zip(parts[1::3], parts[3::3], strict=True))


def test_versions_are_in_order_and_the_newest_is_this_one():
    dates = [date for _, date in VERSION.findall(TEXT)]
    assert dates == sorted(dates, reverse=True)
    assert next(iter(sections())) == __version__


def test_the_same_version_stands_wherever_it_is_told():
    settings = (ROOT / "pyproject.toml").read_text()
    assert f'\nversion = "{__version__}"\n' in settings
    first = (ROOT / "debian" / "changelog").read_text().splitlines()[0]
    assert first.startswith(f"moorage ({__version__}) ")


def test_each_heading_stands_once_in_a_version():
    for text in sections().values():
        found = re.findall(r"^### (.*)$", text, re.MULTILINE)
        assert found == [one for one in HEADINGS if one in found]


@pytest.mark.requirement("S3-37")
def test_calls_that_changed_are_announced():
    announced = sections()[__version__].partition("### Calls that changed\n")[2]
    rows = re.findall(r"^\| .* \|$", announced.partition("\n### ")[0], re.MULTILINE)
    assert len(rows) > 10
    assert all(row.count(" | ") == 2 for row in rows)


def test_an_entry_is_a_line_or_two():
    entries = re.split(r"^(?=- |###|\n)", TEXT, flags=re.MULTILINE)
    long = [one for one in entries if one.startswith("- ") and one.count("\n") > 2]
    assert long == []
