# SPDX-License-Identifier: BSD-2-Clause
"""What the planner says: who survives what, and how the cluster would be balanced.

The planner is that of `hcheck` and `hbal`, on the answers that these read with ``-L``.
It works for one question at a time, in a thread, or in a process where there are many.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import quote

from moorage.client.aio import AsyncClient
from moorage.errors import NotFound
from moorage.htools import Rules, Searcher, State, Step, load
from moorage.htools import balance as balanced
from moorage.htools.formats import luxi
from moorage.htools.plans.balancing import Filter
from moorage.htools.plans.guard import guard
from moorage.htools.survival.certificate import certify
from moorage.pictures.balancing import balancing
from moorage.pictures.ink import Picture
from moorage.pictures.losses import Lost, losses
from moorage.pictures.survival import all_of, one_of
from moorage.web.values import ROOT, moment
from moorage.web.visit import Page, Visit

from .apart import Answers, Apart
from .moving import Job, Mover, jobs_of

T = TypeVar("T")
_STEPS: Final = 50
"""Steps that a page plans; ``hbal`` goes on."""


_LASTS: Final = 20.0
"""How long it is good what losses do, in times of what it took: on a cluster of
thousands the planner takes a twentieth of a processor, on a small one each look is a
new one."""
_PATIENCE: Final = 5.0
"""Seconds that a page plans."""
_LEADS: Final = f"{ROOT}/survival?lost="


class _Kept(NamedTuple):
    """What each loss would do, when that was so, and until when it is good."""

    losses: Sequence[Lost]
    made: float
    until: float


class Planner:
    """The planner of one door, with what it said last.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    apart
        Where it works.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        apart: Apart | None = None,
    ) -> None:
        self._clock = clock
        self._apart = apart or Apart()
        self.mover = Mover(clock)
        # It takes a processor for itself, and what it reads asks all nodes.
        self._one_at_a_time = asyncio.Lock()
        # By role, as the two below: what the master tells goes by that.
        self._kept: dict[str, _Kept] = {}
        self._under_way: dict[Hashable, asyncio.Future[Any]] = {}

    def close(self) -> None:
        """Plan no more."""
        self._apart.close()

    async def survival(self, visit: Visit) -> Page:
        """Show what each loss would do, or what one does that the address names."""
        key = visit.asked("lost")
        await visit.client.query("group", ("name",))  # who may not is refused here
        known = self._kept.get(visit.role)
        if known is None or self._clock() > known.until:
            work = partial(self._certified, visit)
            known = await self._together((visit.role, "survival"), work)
        found = known.losses
        draw = partial(one_of, found, key) if key else partial(all_of, found, _LEADS)
        picture = await asyncio.to_thread(draw)
        if picture is None:
            raise NotFound(f"there is nothing called '{key}' that could be lost")
        picture = picture._replace(lead=f"{picture.lead} As of {moment(known.made)}.")
        up = [("What survives a loss", f"{ROOT}/survival")] if key else []
        return shown(picture, "hcheck -L --survive", up)

    async def _certified(self, visit: Visit) -> _Kept:
        """Have everything lost in thought anew, and keep that for a while."""
        began, made = self._clock(), time.time()
        found = await self._apart.plan(_losses, await _answers(visit.client))
        now = self._clock()
        known = _Kept(found, made, now + _LASTS * (now - began))
        self._kept[visit.role] = known
        return known

    async def balance(self, visit: Visit) -> Page:
        """Show the steps that would balance a group: the first, or that of the address.

        Nothing is done.
        """
        groups = await visit.client.query("group", ("name",))
        names = [one["name"] for one in groups.objects()]
        name = visit.asked("group") or next(iter(names), "")
        if name not in names:
            raise NotFound(f"there is no group called '{name}'")
        work = partial(self._balanced, visit, name)
        picture, jobs = await self._together((visit.role, "balance", name), work)
        around = [(one, f"{ROOT}/balance?group={quote(one)}") for one in names]
        others = [pair for pair in around if pair[0] != name]
        page = shown(picture, f"hbal -L -G {name} -C", others)
        offered = self.mover.offered(visit, name, jobs)
        return page._replace(values={**page.values, "run": offered})

    async def _balanced(self, visit: Visit, name: str) -> tuple[Picture, list[Job]]:
        return await self._apart.plan(_balance, await _answers(visit.client), name)

    async def _together(
        self, question: Hashable, work: Callable[[], Awaitable[T]]
    ) -> T:
        """Return what a work says; who asks the same meanwhile waits for it, too."""

        async def alone() -> T:
            async with self._one_at_a_time:
                return await work()

        under_way = self._under_way.get(question)
        if under_way is None:
            under_way = asyncio.ensure_future(alone())
            self._under_way[question] = under_way
            under_way.add_done_callback(lambda _: self._under_way.pop(question))
        return cast("T", await asyncio.shield(under_way))


async def _answers(client: AsyncClient) -> Answers:
    """Return the cluster as the planner reads it."""
    calls = luxi.CALLS.items()
    return {name: await client.call(method, *args) for name, (method, args) in calls}


def _losses(answers: Answers) -> Sequence[Lost]:
    """Return what each loss would do."""
    return losses(certify(load(luxi.parse(answers)).state))


def _balance(answers: Answers, name: str) -> tuple[Picture, list[Job]]:
    """Return the picture of a group's plan, and the jobs that carry it out.

    Raises
    ------
    NotFound
        If the group has gone.
    """
    fleet = luxi.parse(answers)
    names = [group.name for group in fleet.groups]
    if name not in names:
        raise NotFound(f"there is no group called '{name}'")
    state: State = load(fleet).state.group_view(names.index(name))
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
