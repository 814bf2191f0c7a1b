# SPDX-License-Identifier: BSD-2-Clause
"""Turns: what is late within one term is refused, and nothing piles up."""

import asyncio

import pytest

from moorage.errors import Stale
from moorage.node.machine import turns
from moorage.node.machine.turns import Step, Turns


async def took(place: Turns, number: int, *objects: str, term: int = 1) -> None:
    async with place.take(objects, Step(term, number)):
        pass


async def test_a_lower_number_is_late() -> None:
    place = Turns()
    await took(place, 5, "a", "b")
    with pytest.raises(Stale, match="request 4 is too late: request 5 of the same"):
        await took(place, 4, "b", "c")
    await took(place, 4, "c")
    await took(place, 5, "a")
    await took(place, 1, "a", term=2)
    await took(place, 0, "a")  # nobody counted it


async def test_the_undo_overtakes_what_still_waits() -> None:
    place = Turns()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with place.take(["a"], Step(1, 1)):
            begun.set()
            await go_on.wait()

    holding = asyncio.create_task(hold())
    await begun.wait()
    step = asyncio.create_task(took(place, 2, "a"))
    await asyncio.sleep(0)
    undo = asyncio.create_task(took(place, 3, "a"))
    await asyncio.sleep(0)
    go_on.set()
    await holding
    with pytest.raises(Stale):
        await step
    await undo


async def test_nothing_piles_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_REMEMBERED", 3)
    place = Turns()
    for number in range(1, 9):
        await took(place, number, f"{number}")
    assert place._turns == {}
    assert [name for name, _ in place._newest] == ["6", "7", "8"]


async def test_numbers_of_another_make_nothing_late() -> None:
    """Somebody has the master's key, and counts further than the master ever does."""
    place = Turns()
    async with place.take(["a"], Step(1, 5, "master")):
        pass
    async with place.take(["a"], Step(1, 10**6)):
        pass
    async with place.take(["a"], Step(1, 6, "master")):
        pass
    with pytest.raises(Stale):
        async with place.take(["a"], Step(1, 5, "master")):
            pass
    # And the master can end what was begun with such a number.
    assert Step(1, 10**6).older(Step(1, 7, "master"))
    assert not Step(1, 8, "master").older(Step(1, 7, "master"))
    assert not Step(2, 1, "next").older(Step(1, 7, "master"))
