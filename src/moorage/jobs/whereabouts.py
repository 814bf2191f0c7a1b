# SPDX-License-Identifier: BSD-2-Clause
"""Where guests are: what each node lists, asked once for all jobs that must know it.

A job that is about to start a guest must know of all nodes that none of them has it.
To ask a thousand nodes for each start costs more than all the rest of it. So a node is
asked for the list of all its guests, and the list serves every job of that moment. It
serves later ones, too, to say that a guest is *not* on a node, as long as all of this
holds:

* this master has ordered nothing on the node since it was asked, and waits for nothing
  that a node was ordered and may be doing still;
* it was asked a moment ago;
* the node has heard this master for a while: it obeys no former one any more, and what
  that ordered last has come to its end;
* the list does not name the guest, in whatever state.

Whoever asks holds the lock of the instance, so no other job of this master is moving
its guest meanwhile. What a node said is never a reason to refuse: it is asked again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

from moorage.model import Node
from moorage.protocol import ListGuests

from .operation import Ask, Question, Sought
from .turns import together

_GOOD = 30.0
"""Seconds that a list is good for, of a node that was ordered nothing since."""
_MET = 10.0
"""Seconds from a node's first answer to this master until its lists are kept at all."""


class _Listed(NamedTuple):
    """What a node said.

    Attributes
    ----------
    guests
        The states of all its guests, by uuid; None where it gave no answer.
    turn
        When it was asked, among all questions and orders.
    until
        Until when it says which guests are not there, in seconds.
    """

    guests: Mapping[str, str] | None
    turn: int
    until: float


class Whereabouts:
    """The guests of all nodes, as those who must know them have asked lately.

    Parameters
    ----------
    clock
        The time in seconds; it never goes back.
    ask
        Asks a node some questions; an error stands for the answer that it does not
        give.

    Attributes
    ----------
    silent
        The nodes that were asked and have not answered yet.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        ask: Callable[[list[Question]], Awaitable[Sequence[Any]]],
    ) -> None:
        self.silent: set[str] = set()
        self._clock = clock
        self._ask = ask
        self._turns = count(1)
        self._lists: dict[str, _Listed] = {}
        self._kept: dict[str, _Listed] = {}
        self._ends: list[tuple[float, str]] = []
        self._named: dict[str, tuple[str, ...]] = {}
        self._nodes: tuple[Node, ...] = ()
        self._uuids: frozenset[str] = frozenset()
        self._unkept: dict[str, None] = {}
        self._ordered: dict[str, int] = {}
        self._in_doubt: dict[str, float] = {}
        self._met: dict[str, float] = {}
        self._round: asyncio.Task[None] | None = None

    def ordered(self, node: str, doubt: float = 0.0) -> None:
        """Take note that a node did something for this master, or may do it still.

        Parameters
        ----------
        doubt
            For how many seconds, where its answer was lost.
        """
        self._ordered[node] = next(self._turns)
        self._drop(node)
        if doubt:
            until = max(self._in_doubt.get(node, 0.0), self._clock() + doubt)
            self._in_doubt[node] = until

    def met(self, node: str) -> None:
        """Take note that a node has answered: it has heard of this master by now."""
        self._met.setdefault(node, self._clock())

    def forget(self, node: str) -> None:
        """Forget a node: what is on record of it has changed, it may be another one."""
        self.ordered(node)
        self._met.pop(node, None)

    def stop(self) -> None:
        """Ask nobody any more."""
        if self._round:
            self._round.cancel()

    async def find(self, sought: Sought) -> dict[str, str]:
        """Return the states of a guest by node, of the nodes that have it.

        One that gives no answer is left out.
        """
        guest, since = sought.guest, next(self._turns)
        doubtful = self._doubtful(sought)
        while missing := self._missing(doubtful, guest, since):
            if self._round is None:
                self._round = asyncio.create_task(self._list(missing))
            # One that is under way may be about others: these are looked at again.
            await asyncio.shield(self._round)
        lists = ((node, self._lists[node].guests or {}) for node in doubtful)
        return {node: has[guest] for node, has in lists if guest in has}

    def _missing(self, nodes: Iterable[str], guest: str, since: int) -> list[str]:
        """Return the nodes that must be asked for a guest, of those that may have it.

        What a node was asked since the job holds its locks counts, whatever it said.
        """
        self._expire()
        lists, naming = self._lists, self._named.get(guest, ())
        old = [one for one in nodes if one not in lists or lists[one].turn < since]
        return [one for one in old if one not in self._kept or one in naming]

    def _doubtful(self, sought: Sought) -> list[str]:
        """Return the nodes of which nothing is kept that says: the guest is not here.

        There may be thousands of nodes, and this is done for each start: it looks at
        those alone that it returns, unless another node came, went or changed.
        """
        if self._nodes is not sought.nodes:
            self._nodes = sought.nodes
            uuids = [node.uuid for node in sought.nodes]
            self._uuids = frozenset(uuids)
            self._unkept = dict.fromkeys(u for u in uuids if u not in self._kept)
        self._expire()
        naming = self._uuids.intersection(self._named.get(sought.guest, ()))
        return [one for one in (*self._unkept, *naming) if one != sought.home]

    async def _list(self, nodes: list[str]) -> None:
        """Ask some nodes for their guests."""
        self.silent.update(nodes)
        try:
            await together(self._listed(node) for node in nodes)
        finally:
            self.silent.clear()
            self._round = None

    async def _listed(self, node: str) -> None:
        turn, now = next(self._turns), self._clock()
        [found] = await self._ask([Ask(node, ListGuests())])
        answered = isinstance(found, list)
        guests = {one.uuid: one.state for one in found} if answered else None
        self._lists[node] = listed = _Listed(guests, turn, now + _GOOD)
        if answered and self._is_calm(node, turn, now):
            self._keep(node, listed)
        self.silent.discard(node)

    def _is_calm(self, node: str, turn: int, asked: float) -> bool:
        """Whether nothing changes on a node after it was asked, but by an order."""
        return (
            turn > self._ordered.get(node, 0)
            and asked >= self._met.get(node, asked) + _MET
            and asked >= self._in_doubt.get(node, 0.0)
        )

    def _keep(self, node: str, listed: _Listed) -> None:
        self._drop(node)
        self._kept[node] = listed
        self._unkept.pop(node, None)
        alone = (node,)  # one for all its guests: there are tens of thousands
        for guest in listed.guests or ():
            others = self._named.get(guest)
            self._named[guest] = (*others, node) if others else alone
        heappush(self._ends, (listed.until, node))

    def _drop(self, node: str) -> None:
        listed = self._kept.pop(node, None)
        if listed is None:
            return
        if node in self._uuids:
            self._unkept[node] = None
        for guest in listed.guests or ():
            others = tuple(one for one in self._named.pop(guest) if one != node)
            if others:
                self._named[guest] = others

    def _expire(self) -> None:
        """Drop what was kept for long enough."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, node = heappop(self._ends)
            kept = self._kept.get(node)
            if kept and kept.until <= now:  # not another one, that came since
                self._drop(node)
