# SPDX-License-Identifier: BSD-2-Clause
"""A file of loads, as ``hbal -U`` takes it: five columns a line."""

import pytest

from moorage.errors import BadInput
from moorage.htools.formats.loads import parse_loads


def test_a_line_has_a_name_and_four_loads() -> None:
    assert parse_loads("web1 2 1 0.5 0\n") == [("web1", (2.0, 1.0, 0.5, 0.0))]


def test_another_number_of_columns_is_told() -> None:
    with pytest.raises(BadInput, match="line 1, column 1: 3 columns instead of 5"):
        parse_loads("web1 2 1\n")
