# SPDX-License-Identifier: BSD-2-Clause
"""The generated pages of the reference say what the code says."""

from pathlib import Path

import declared
import generate

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_reference_is_current():
    assert not generate.stale(), "run: python docs/generate.py"


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


def test_a_section_of_attributes():
    class Thing:
        """A thing.

        Attributes
        ----------
        left, right
            A side, in
            ``mm``.
        """

    assert declared.attributes(Thing) == {
        "left": "A side, in `mm`.",
        "right": "A side, in `mm`.",
    }
