# SPDX-License-Identifier: BSD-2-Clause
"""The layout of the info commands: any YAML reader takes it."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.cli.yamlish import Flow, lines

CHARACTERS = st.characters(
    min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"]
)
TEXT = st.text(CHARACTERS)
NAME = st.text(CHARACTERS, min_size=1)


@settings(max_examples=50)
@given(TEXT)
def test_any_text_is_read_back(text: str) -> None:
    found = yaml.load("\n".join(lines({"a": text})), Loader=yaml.BaseLoader)  # noqa: S506 - texts only
    assert found == {"a": text}


@settings(max_examples=50)
@given(
    st.recursive(
        TEXT,
        lambda inner: (
            st.lists(inner, min_size=1) | st.dictionaries(NAME, inner, min_size=1)
        ),
        max_leaves=20,
    )
)
def test_any_nesting_is_read_back(value: Any) -> None:
    document = {"top": value}
    text = "\n".join(lines(document))
    found = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - texts only
    assert found == document


@pytest.mark.requirement("S0-59")
def test_a_logical_id_stands_on_one_line() -> None:
    (line,) = lines({"logical_id": Flow(["prov", "u.ext.disk0"])})
    assert line == "logical_id: ['prov', 'u.ext.disk0']"
    assert yaml.safe_load(line) == {"logical_id": ["prov", "u.ext.disk0"]}
