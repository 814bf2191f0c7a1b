# SPDX-License-Identifier: BSD-2-Clause
"""What the planner says: who survives what, and how the cluster would be balanced.

The planner is that of `hcheck` and `hbal`, on the answers that these read with ``-L``.
It works in a thread, for one who asks at a time. What it said last is kept, and is good
for the very same answers alone.
"""

import asyncio
from typing import Final, NamedTuple
from urllib.parse import quote

from moorage.client.aio import AsyncClient
from moorage.errors import NotFound
from moorage.htools import Rules, State, load
from moorage.htools import balance as balanced
from moorage.htools.fleet import Fleet
from moorage.htools.formats import luxi
from moorage.htools.survival.certificate import Certificate, certify
from moorage.pictures.balancing import balancing
from moorage.pictures.ink import Picture
from moorage.pictures.survival import one_of
from moorage.pictures.survival import survival as survival_of
from moorage.web.values import ROOT
from moorage.web.visit import Page, Visit

_ONE_AT_A_TIME: Final = asyncio.Lock()
"""The planner takes a processor for itself, and what it reads asks all nodes."""
_STEPS: Final = 50
"""Steps that a page plans; ``hbal`` goes on."""


class _Known(NamedTuple):
    """What was certified last, and of what."""

    fleet: Fleet
    certificate: Certificate


_known: list[_Known] = []


async def _fleet(client: AsyncClient) -> Fleet:
    """Return the cluster as the planner reads it."""
    calls = luxi.CALLS.items()
    answers = {name: await client.call(method, *args) for name, (method, args) in calls}
    return await asyncio.to_thread(luxi.parse, answers)


async def survival(visit: Visit) -> Page:
    """Show what each loss would do, or what one does that the address names."""
    key = visit.asked("lost")
    async with _ONE_AT_A_TIME:
        fleet = await _fleet(visit.client)
        picture = await asyncio.to_thread(_survival, fleet, key)
    if picture is None:
        raise NotFound(f"there is nothing called '{key}' that could be lost")
    up = [("What survives a loss", f"{ROOT}/survival")] if key else []
    return shown(picture, "hcheck -L --survive", up)


def _survival(fleet: Fleet, key: str) -> Picture | None:
    if not _known or _known[0].fleet != fleet:
        _known[:] = [_Known(fleet, certify(load(fleet).state))]
    found = _known[0].certificate
    return one_of(found, key) if key else survival_of(found, f"{ROOT}/survival?lost=")


async def balance(visit: Visit) -> Page:
    """Show the steps that would balance a group: the first one, or that of the address.

    Nothing is done.
    """
    async with _ONE_AT_A_TIME:
        fleet = await _fleet(visit.client)
        names = [group.name for group in fleet.groups]
        name = visit.asked("group") or next(iter(names), "")
        if name not in names:
            raise NotFound(f"there is no group called '{name}'")
        picture = await asyncio.to_thread(_balance, fleet, names.index(name))
    groups = [
        (one, f"{ROOT}/balance?group={quote(one)}") for one in names if one != name
    ]
    return shown(picture, f"hbal -L -G {name} -C", groups if len(names) > 1 else [])


def _balance(fleet: Fleet, at: int) -> Picture:
    state: State = load(fleet).state
    plan = balanced(state.group_view(at), Rules(max_steps=_STEPS))
    picture = balancing(plan)
    if len(plan.steps) < _STEPS:
        return picture
    return picture._replace(lead=f"{picture.lead} These are the first {_STEPS} steps.")


def shown(picture: Picture, command: str, around: list[tuple[str, str]]) -> Page:
    """Return the page of a picture.

    Parameters
    ----------
    command
        Says the same.
    around
        Other pictures: what they are called, and where they are.
    """
    told = {"picture": picture, "command": command, "around": around}
    return Page("picture", told)
