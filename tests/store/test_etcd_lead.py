# SPDX-License-Identifier: BSD-2-Clause
"""The lead's clock: it goes on while the machine sleeps."""

import asyncio

import pytest

from moorage.store.base import StoreLost
from moorage.store.etcd import EtcdSettings, gateway, lead
from moorage.store.etcd.lead import Lead


class Answering:
    """An etcd that renews whatever is asked for."""

    settings = EtcdSettings(endpoints=("http://127.0.0.1:1",), lease=60)

    async def renew(self, _lease: int, _until: float) -> int:
        return 60


async def test_a_lead_that_ran_out_while_the_machine_slept_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a look at the clock it would be believed for twelve seconds more."""
    slept = 0.0
    monkeypatch.setattr(lead, "now", lambda: gateway.now() + slept)
    held = Lead(Answering(), 1, 1, gateway.now() + 48)  # type: ignore[arg-type]
    told: asyncio.Queue[str] = asyncio.Queue()
    keeping = asyncio.create_task(held.keep(told.put_nowait))
    await asyncio.sleep(0.1)
    assert not held.ended()
    slept = 100.0
    assert held.ended()
    async with asyncio.timeout(10):
        assert "could not be renewed in time" in await told.get()
    await keeping


def test_who_stood_still_learns_of_it_before_it_says_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever thread goes on first: none waits for the one that keeps the lead."""
    slept = 0.0
    monkeypatch.setattr(lead, "now", lambda: gateway.now() + slept)
    held = Lead(Answering(), 1, 1, gateway.now() + 48)  # type: ignore[arg-type]
    told: list[str] = []
    held.look(told.append)
    assert not told
    slept = 100.0
    with pytest.raises(StoreLost):
        held.look(told.append)
    assert told == ["the lead in etcd was not renewed in time"]
