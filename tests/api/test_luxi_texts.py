# SPDX-License-Identifier: BSD-2-Clause
"""Texts that no program takes are refused at the master's door."""

import json

import pytest

from moorage.api.luxi_texts import check_texts
from moorage.errors import BadInput


@pytest.mark.parametrize(
    "text",
    [r'"a\u0000b"', r'[{"a": ["\ud800"]}]', r'{"\udcff": 1}', r'["ok", "\u0000"]'],
)
def test_half_a_character_and_nulls(text) -> None:
    with pytest.raises(BadInput, match="a text in the request"):
        check_texts(json.loads(text))


@pytest.mark.parametrize("text", [r'"\ud83d\udea2"', r'"\\u0000"', "[1, null, {}]"])
def test_what_is_text(text) -> None:
    check_texts(json.loads(text))
