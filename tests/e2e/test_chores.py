# SPDX-License-Identifier: BSD-2-Clause
"""A master's chores: a defect in one of them does not end it for good."""

import logging

import pytest

from moorage.daemons.chores import kept_up


async def test_a_chore_that_broke_is_begun_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun = []

    async def chore() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            raise ValueError("a defect")

    with caplog.at_level(logging.ERROR):
        await kept_up(chore, again=0.0)
    assert begun == [0, 1, 2]
    told = [record.getMessage() for record in caplog.records]
    assert told == ["a chore of the master broke: it begins again"] * 2
