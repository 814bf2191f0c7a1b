# SPDX-License-Identifier: BSD-2-Clause
"""The generated pages of the reference say what the code says."""

import re
from pathlib import Path
from typing import Any

import declared
import generate
from msgspec.structs import fields

from moorage.jobs.fields import attributes
from moorage.jobs.results import result_of
from moorage.ops import OPERATIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_is_current():
    assert not generate.stale(), "run: python scripts/docs/generate.py"


def test_every_program_is_described():
    text = generate.written()[DOCS / "reference" / "commands.md"]
    scripts = (DOCS.parent / "pyproject.toml").read_text()
    for line in scripts.partition("[project.scripts]")[2].splitlines()[1:]:
        if not line:
            break
        name = line.split()[0]
        if ".htools." in line:
            assert f"`{name}`" in (DOCS / "htools.md").read_text()
        else:
            assert f"\n## {name}\n" in text


def test_every_error_has_a_line():
    text = generate.written()[DOCS / "reference" / "errors.md"]
    for code in generate.errors.BY_CODE:
        assert f"| `{code}` |" in text


def test_every_operation_says_the_type_of_its_result():
    def is_vague(kind):
        parts = getattr(kind, "__args__", ())
        return kind is Any or any(map(is_vague, parts))

    for op_id, operation in OPERATIONS.items():
        kind = result_of(operation)
        parts = [one.type for each in declared.records(kind) for one in fields(each)]
        assert not any(map(is_vague, [kind, *parts])), op_id


def test_a_section_of_attributes():
    class Thing:
        """A thing.

        Attributes
        ----------
        left, right
            A side, in
            ``mm``.
        """

    assert attributes(Thing) == {
        "left": "A side, in `mm`.",
        "right": "A side, in `mm`.",
    }


def test_the_page_on_extensions_names_files_that_there_are() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "how-to" / "extend.md").read_text()
    named = re.findall(r"`([a-z_]+/[\w/]+(?:\.py|/))`", page)
    places = (root / "src" / "moorage", root)
    assert len(named) > 15
    assert [one for one in named if not any((at / one).exists() for at in places)] == []
    rows = re.findall(r"^\| (?:a|an) .*?\| (.*?) \|", page, re.MULTILINE)
    assert len(rows) == 15
