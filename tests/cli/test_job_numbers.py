# SPDX-License-Identifier: BSD-2-Clause
"""Jobs by their numbers: ranges, and what is no range."""

import pytest

from moorage.cli.gnt_job.commands import numbers, wanted_jobs
from moorage.errors import BadInput


def test_a_range_is_all_its_numbers() -> None:
    assert numbers(["7", "3-5", "4-4"]) == [7, 3, 4, 5, 4]


@pytest.mark.parametrize("word", ["5-1", "x", "1-", "-3", "1-2-3", "²"])
def test_what_is_no_range_is_refused(word: str) -> None:
    with pytest.raises(BadInput):
        numbers([word])


def test_a_range_that_ends_before_it_begins_is_no_filter() -> None:
    with pytest.raises(BadInput, match="ends before it begins"):
        wanted_jobs(["1", "5-1"])


@pytest.mark.parametrize("word", ["1-99999999", "1-" + "9" * 5000, "9" * 5000])
def test_a_range_without_end_is_refused_at_once(word: str) -> None:
    with pytest.raises(BadInput):
        numbers([word])


def test_a_list_takes_ranges_as_a_filter() -> None:
    assert wanted_jobs(["3-5", "9"]) == [
        "|",
        ["&", [">=", "id", 3], ["<=", "id", 5]],
        ["==", "id", 9],
    ]
    assert wanted_jobs(["9"]) is None
    assert wanted_jobs(["status", "3-5"]) is None
