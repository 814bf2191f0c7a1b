# SPDX-License-Identifier: BSD-2-Clause
"""Turns: verbs on one object wait for each other, and none comes after its time.

A master counts its requests. Whoever undoes a step sends the undo later than the step,
so of two requests about one object the lower number is the older one; when it arrives
behind the other, it was held up on its way, and is refused. A request lives as long as
its connection and no longer than this process, so memory is enough to know the highest
number. Each that asks counts for itself, and is known by its mark: the numbers of one
do not make those of another late.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.errors import Stale


class Step(NamedTuple):
    """Which request it is: the master's term, and its number within the term.

    Number 0 is one that nobody counted; it is never late. The mark is that of the
    process that counts.
    """

    term: int
    number: int = 0
    mark: str = ""

    def older(self, other: "Step") -> bool:
        """Whether it is of an earlier term, of another one's counting, or earlier."""
        same = (self.term, self.mark) == (other.term, other.mark)
        return self.number < other.number if same else self.term <= other.term


_NOBODY = Step(0)
_REMEMBERED = 10_000
"""Of how many objects the newest step is known: those that were worked on last."""


@dataclass(frozen=True)
class Work:
    """What is under way: on which objects, by which step, and by whose order.

    Attributes
    ----------
    by
        Pins of the keys that the master is known by; none where no network is used.
    """

    objects: frozenset[str] = frozenset()
    step: Step = _NOBODY
    by: frozenset[str] = frozenset()


NOTHING = Work()
CURRENT: ContextVar[Work] = ContextVar("CURRENT", default=NOTHING)
"""The work that the running task does; the programs that it starts are noted by it."""


@dataclass
class _Turn:
    """The turns of one object; `wanted` counts who has it and who waits."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class Turns:
    """The turns of all objects of a node."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._newest: dict[tuple[str, str], Step] = {}

    @asynccontextmanager
    async def take(
        self, objects: Collection[str], step: Step, by: frozenset[str] = frozenset()
    ) -> AsyncIterator[None]:
        """Wait for the work under way on the objects, and hold them.

        Parameters
        ----------
        by
            Whose order it is (`Work.by`).

        Raises
        ------
        Stale
            If a later step on one of them came first, or came while this one waited.
        """
        self._pass(objects, step)
        async with AsyncExitStack() as stack:
            for name in sorted(objects):
                await stack.enter_async_context(self._alone(name))
            self._pass(objects, step)
            CURRENT.set(Work(frozenset(objects), step, by))
            yield

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(name, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[name]

    def _pass(self, objects: Collection[str], step: Step) -> None:
        if not step.number:
            return
        counted = [(name, step.mark) for name in objects]
        for one in counted:
            newest = self._newest.get(one, step)
            if step < newest:
                raise Stale(
                    f"request {step.number} is too late: request {newest.number} of "
                    "the same master was about the same object",
                    number=step.number,
                    seen=newest.number,
                )
        for one in counted:
            self._newest.pop(one, None)  # so that the last one stands last
            self._newest[one] = step
        while len(self._newest) > _REMEMBERED:
            del self._newest[next(iter(self._newest))]
