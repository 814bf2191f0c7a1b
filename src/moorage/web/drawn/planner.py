# SPDX-License-Identifier: BSD-2-Clause
"""What the planner says: who survives what, and how the cluster would be balanced.

The planner is that of `hcheck` and `hbal`, on the answers that these read with ``-L``.
It works in a thread, for one who asks at a time.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import quote

from moorage.client.aio import AsyncClient
from moorage.errors import NotFound
from moorage.htools import Rules, Searcher, State, Step, load
from moorage.htools import balance as balanced
from moorage.htools.fleet import Fleet
from moorage.htools.formats import luxi
from moorage.htools.plans.balancing import Filter
from moorage.htools.plans.guard import guard
from moorage.htools.survival.certificate import Certificate, certify
from moorage.pictures.balancing import balancing
from moorage.pictures.ink import Picture
from moorage.pictures.survival import one_of
from moorage.pictures.survival import survival as survival_of
from moorage.web.values import ROOT, moment
from moorage.web.visit import Page, Visit

from .moving import Job, Mover, jobs_of

_STEPS: Final = 50
"""Steps that a page plans; ``hbal`` goes on."""


_LASTS: Final = 20.0
"""How long a certificate is good, in times of what it took: on a cluster of thousands
the planner takes a twentieth of a processor, on a small one each look is a new one."""
_MOST: Final = 16
"""Users whose certificate is kept."""
_PATIENCE: Final = 5.0
"""Seconds that a page plans."""


class _Kept(NamedTuple):
    """A certificate, when it was made, and until when it is good."""

    certificate: Certificate
    made: float
    until: float


async def _fleet(client: AsyncClient) -> Fleet:
    """Return the cluster as the planner reads it."""
    calls = luxi.CALLS.items()
    answers = {name: await client.call(method, *args) for name, (method, args) in calls}
    return await asyncio.to_thread(luxi.parse, answers)


_LEADS: Final = f"{ROOT}/survival?lost="


class Planner:
    """The planner of one door, with what it said last.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.mover = Mover(clock)
        # It takes a processor for itself, and what it reads asks all nodes.
        self._one_at_a_time = asyncio.Lock()
        # By user: another one may be told less.
        self._kept: dict[str, _Kept] = {}

    async def survival(self, visit: Visit) -> Page:
        """Show what each loss would do, or what one does that the address names."""
        key = visit.asked("lost")
        await visit.client.query("node", ("name",))  # who may not is refused here
        async with self._one_at_a_time:
            known = self._kept.get(visit.user)
            if known is None or self._clock() > known.until:
                known = await self._certified(visit)
        found = known.certificate
        draw = (
            partial(one_of, found, key) if key else partial(survival_of, found, _LEADS)
        )
        picture = await asyncio.to_thread(draw)
        if picture is None:
            raise NotFound(f"there is nothing called '{key}' that could be lost")
        picture = picture._replace(lead=f"{picture.lead} As of {moment(known.made)}.")
        up = [("What survives a loss", f"{ROOT}/survival")] if key else []
        return shown(picture, "hcheck -L --survive", up)

    async def _certified(self, visit: Visit) -> _Kept:
        """Have everything lost in thought anew, and keep that for a while."""
        began, made = self._clock(), time.time()
        fleet = await _fleet(visit.client)
        certificate = await asyncio.to_thread(lambda: certify(load(fleet).state))
        now = self._clock()
        self._kept.pop(visit.user, None)
        while len(self._kept) >= _MOST:
            del self._kept[next(iter(self._kept))]
        known = _Kept(certificate, made, now + _LASTS * (now - began))
        self._kept[visit.user] = known
        return known

    async def balance(self, visit: Visit) -> Page:
        """Show the steps that would balance a group: the first, or that of the address.

        Nothing is done.
        """
        async with self._one_at_a_time:
            fleet = await _fleet(visit.client)
            names = [group.name for group in fleet.groups]
            name = visit.asked("group") or next(iter(names), "")
            if name not in names:
                raise NotFound(f"there is no group called '{name}'")
            found = await asyncio.to_thread(_balance, fleet, names.index(name))
            picture, jobs = found
        around = [(one, f"{ROOT}/balance?group={quote(one)}") for one in names]
        others = [pair for pair in around if pair[0] != name]
        page = shown(picture, f"hbal -L -G {name} -C", others)
        offered = self.mover.offered(visit, name, jobs)
        return page._replace(values={**page.values, "run": offered})


def _balance(fleet: Fleet, at: int) -> tuple[Picture, list[Job]]:
    """Return the picture of a group's plan, and the jobs that carry it out."""
    state: State = load(fleet).state.group_view(at)
    end, search = time.monotonic() + _PATIENCE, Searcher().best_step

    def in_time(
        state: State, rules: Rules, current: float, allowed: Filter | None
    ) -> Step | None:
        late = time.monotonic() > end
        return None if late else search(state, rules, current, allowed)

    rules = Rules(max_steps=_STEPS)
    plan = balanced(state, rules, search=in_time, allowed=guard(state))
    picture = balancing(plan)
    if len(plan.steps) < _STEPS and time.monotonic() <= end:
        return picture, jobs_of(plan)
    more = picture._replace(lead=f"{picture.lead} hbal may find more steps.")
    return more, jobs_of(plan)


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
