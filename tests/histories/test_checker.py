# SPDX-License-Identifier: BSD-2-Clause
"""The checker of histories finds each kind of fault, and none where there is none."""

import pytest
from checker import (
    ADD,
    READ,
    WRITE,
    Obeyed,
    Op,
    grown,
    linearizable,
    miscounted,
    register,
    two_masters,
)

GOOD = {
    "one after the other": [Op(WRITE, 1, 0, 1), Op(READ, 1, 2, 3)],
    "while it is written, either": [
        Op(WRITE, 1, 0, 9),
        Op(READ, 0, 1, 2),
        Op(READ, 1, 3, 4),
    ],
    "nobody was told, and it was not done": [Op(WRITE, 1, 0), Op(READ, 0, 1, 2)],
    "nobody was told, and it was done late": [
        Op(WRITE, 1, 0),
        Op(WRITE, 2, 1, 2),
        Op(READ, 2, 3, 4),
        Op(READ, 1, 5, 6),
    ],
    "a read that nobody got": [Op(READ, 7, 0)],
}
BAD = {
    "an acknowledged write is lost": [Op(WRITE, 1, 0, 1), Op(READ, 0, 2, 3)],
    "an old master answers": [
        Op(WRITE, 1, 0, 1),
        Op(WRITE, 2, 2, 3),
        Op(READ, 1, 4, 5),
    ],
    "read, and then gone": [
        Op(WRITE, 1, 0, 9),
        Op(READ, 1, 1, 2),
        Op(READ, 0, 3, 4),
    ],
    "nobody wrote it": [Op(READ, 5, 0, 1)],
    "read before it was asked for": [Op(READ, 1, 0, 1), Op(WRITE, 1, 2, 3)],
    "in doubt, seen, and taken back": [
        Op(WRITE, 1, 0),
        Op(READ, 1, 1, 2),
        Op(READ, 0, 3, 4),
    ],
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_a_register_that_is_one(history: list[Op]) -> None:
    assert linearizable(history, 0, register)


@pytest.mark.parametrize("history", BAD.values(), ids=BAD)
def test_a_register_that_is_none(history: list[Op]) -> None:
    assert not linearizable(history, 0, register)


def _read(*values: int, at: float) -> Op:
    return Op(READ, frozenset(values), at, at + 0.5)


def test_a_set_that_lost_one_and_one_that_two_saw_in_another_order() -> None:
    both = [Op(ADD, 1, 0, 9), Op(ADD, 2, 0, 9)]
    assert linearizable([*both, _read(1, at=1), _read(1, 2, at=2)], frozenset(), grown)
    assert not linearizable([*both, _read(1, at=1), _read(2, at=2)], frozenset(), grown)
    lost = [Op(ADD, 1, 0, 1), Op(ADD, 2, 1, 2), _read(2, at=3)]
    assert not linearizable(lost, frozenset(), grown)


def test_a_counter() -> None:
    adds = [Op(ADD, 1, 0, 1), Op(ADD, 1, 2), Op(ADD, 1, 8, 9)]
    assert not [*miscounted([*adds, Op(READ, 11, 3, 4), Op(READ, 13, 9.5, 10)], 10)]
    faults = {
        10: "10 was read, and it was 11 to 12",
        13: "13 was read, and it was 11 to 12",
    }
    for value, said in faults.items():
        assert [*miscounted([*adds, Op(READ, value, 3, 4)], 10)] == [said]
    back = [*adds, Op(READ, 12, 3, 4), Op(READ, 11, 5, 6)]
    assert [*miscounted(back, 10)] == ["11 was read after 12"]


def test_two_masters() -> None:
    peace = [Obeyed(1, 1, "a"), Obeyed(2, 2, "b"), Obeyed(3, 2, "a")]
    assert not [*two_masters(peace)]
    (said,) = two_masters([*peace, Obeyed(4, 1, "a")])
    assert said == "a obeyed term 1, 2.000 s after b obeyed term 2"
