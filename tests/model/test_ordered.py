# SPDX-License-Identifier: BSD-2-Clause
"""Objects in order are what a sorted list would be, whatever comes and goes."""

from random import Random

import pytest

from moorage.model.ordered import Ordered


def itself(number: int) -> int:
    return number


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
def test_it_is_what_a_sorted_list_would_be(size: int) -> None:
    random = Random(size)  # noqa: S311 - numbers, no secrets
    found = Ordered(range(0, 10 * size, 10), itself)
    there = set(range(0, 10 * size, 10))
    for _ in range(3000):
        before = found
        kept = sorted(there)
        if there and random.random() < random.choice((0.2, 0.8)):
            gone = random.choice(kept)
            found = found.without(gone)
            there.remove(gone)
        else:
            new = random.randrange(12_000)
            if new not in there:
                found = found.having(new)
                there.add(new)
        assert list(before) == kept
    assert list(found) == sorted(there)


def test_all_may_go_and_come_again() -> None:
    found = Ordered(range(200), itself)
    for number in range(200):
        found = found.without(number)
    assert list(found) == []
    for number in reversed(range(300)):
        found = found.having(number)
    assert list(found) == list(range(300))
