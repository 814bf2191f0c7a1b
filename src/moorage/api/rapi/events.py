# SPDX-License-Identifier: BSD-2-Clause
"""Events as a stream: the door asks the master once, and tells all who listen.

A stream is that of ``text/event-stream``: a block for each entry of the feed, with its
number as the id, and JSON as the data. Whoever comes back with the last id that it saw
(``Last-Event-ID``, or ``after``) goes on behind it. An event ``start`` says where the
stream begins: to somebody new, and to one who has to read everything anew, for what he
heard last is not kept any more. Who reads too slowly is hung up on, and comes back.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from msgspec import json

from moorage.api.luxi_async import AsyncLuxi
from moorage.api.wanted import Wanted
from moorage.errors import MoorageError

from .refusals import HttpError, refusal
from .roles import Role
from .route import Arg, Asked, Handler, Kind

_LOG = logging.getLogger(__name__)

LISTENER = {"name": "events", "role": int(Role.READ)}
"""Who asks the master for what happens: the door itself, for all who listen."""
KEPT = 2000
"""Entries that the door keeps; a stream that is so far behind is hung up on."""
_WAIT = 30.0
"""Seconds that one question to the master waits."""
_AGAIN = 0.5
"""Seconds between two looks for a master."""
SILENCE = 10.0
"""Seconds without a master after which streams end: the next one may be elsewhere."""
_ALIVE = 15.0
"""Seconds after which a stream without events says that it lives."""


class Hub:
    """The newest entries, as the master tells them.

    Parameters
    ----------
    luxi
        The way to the master, with the right to listen.
    """

    def __init__(self, luxi: AsyncLuxi) -> None:
        self._luxi = luxi
        self._entries: dict[int, Mapping[str, Any]] = {}
        self._base: int | None = None
        self._last: int | None = None
        self._grown = asyncio.Event()
        self._lost: tuple[float, MoorageError] | None = None
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Ask no more; who listens comes to the end."""
        self._closed = True
        self._wake()
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def newest(self) -> int | None:
        """The number of the last entry that was heard; None before the first one."""
        return self._last

    def check(self) -> None:
        """Raise `HttpError` if there has been no master for a while."""
        if self._lost and self._ended:
            raise refusal(self._lost[1])

    @property
    def _ended(self) -> bool:
        """Whether nobody has anything to listen to here."""
        silent = self._lost and time.monotonic() - self._lost[0] >= SILENCE
        return self._closed or bool(silent)

    async def ready(self) -> None:
        """Wait until it is known where the feed is.

        Raises
        ------
        HttpError
            If there has been no master for a while.
        """
        self._begin()
        while self._last is None and not self._ended:
            await self._grown.wait()
        self.check()

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._listen())

    async def after(self, number: int | None) -> AsyncIterator[Sequence[Any] | None]:
        """Yield lists of entries, in order.

        A number alone says where the listener is: at the start, and where what it
        heard last is not kept any more. None is yielded when there was nothing for a
        while. It ends when who listens is too slow, or there is no master.

        Parameters
        ----------
        number
            Of the last entry that was heard; None for the newest one.

        Raises
        ------
        MoorageError
            If the master goes away while it tells what is long past.
        """
        self._begin()
        at = number
        async for place, told in self._caught_up(number):
            at = place
            yield told
        told = ()  # a stream may stand for days, and keeps nothing of its own
        while at is not None and not self._ended:
            grown, newer = self._grown, self._newer(at)
            if newer is None:
                return
            if newer:
                at = newer[-1]["number"]
                yield newer
                continue
            try:
                await asyncio.wait_for(grown.wait(), _ALIVE)
            except TimeoutError:
                yield None

    async def _caught_up(
        self, number: int | None
    ) -> AsyncIterator[tuple[int, Sequence[Any]]]:
        """Yield where the listener is, and what was told, until that is here.

        The master is asked for no more than is taken: entries are large in memory.
        """
        while self._last is None and not self._ended:
            await self._grown.wait()
        if number is None:
            if self._last is not None:
                yield self._last, [self._last]
            return
        at = number
        while not self._ended and self._newer(at) is None:
            answer = await self._luxi.call("WaitForEvents", at, 0.0)
            told = [answer["number"]] if answer["reset"] else answer["entries"]
            at = answer["number"]
            if told:
                yield at, told
            else:
                await asyncio.sleep(_AGAIN)  # we hear of it in a moment

    def _newer(self, number: int) -> list[Mapping[str, Any]] | None:
        """Return the entries behind one; None if that is not here."""
        if number == self._last:
            return []
        if number != self._base and number not in self._entries:
            return None
        newer = takewhile(lambda at: at > number, reversed(self._entries))
        return [self._entries[at] for at in newer][::-1]

    async def _listen(self) -> None:
        """Ask the master for ever; where one ends, the next one goes on."""
        while True:
            try:
                answer = await self._luxi.call("WaitForEvents", self._last, _WAIT)
            except TimeoutError:
                continue
            except MoorageError as error:
                _LOG.debug("no master tells what happens: %s", error)
                self._lost = self._lost or (time.monotonic(), error)
                if self._ended:
                    self._wake()
                await asyncio.sleep(_AGAIN)
                continue
            self._lost = None
            if answer["reset"] or self._last is None:
                self._entries.clear()
                self._base = answer["number"]
            self._take(answer["entries"])
            if self._last != answer["number"]:
                self._last = answer["number"]
                self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    def _take(self, entries: Iterable[Mapping[str, Any]]) -> None:
        for one in entries:
            self._entries[one["number"]] = one
        while len(self._entries) > KEPT:
            self._base = next(iter(self._entries))
            del self._entries[self._base]


def blocks(told: Sequence[Any] | None, wanted: Wanted) -> Iterable[bytes]:
    """Yield what is sent of some entries, which :meth:`Hub.after` yielded."""
    if told is None:
        yield b": nothing happened\n\n"
        return
    for one in told:
        if isinstance(one, int):
            yield _block(one, "start", {"number": one})
            continue
        kept = wanted.of(one)
        if kept:
            yield _block(one["number"], "change", kept)
        elif one is told[-1]:  # so that he comes back behind it
            yield b"id: %d\n\n" % one["number"]


def _block(number: int, event: str, data: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        number,
        event.encode(),
        json.encode(data),
    )


@dataclass(frozen=True, slots=True)
class Events(Handler):
    """A stream of what happens; the application serves it."""

    answer = str
    media = "text/event-stream"

    async def __call__(self, asked: Asked) -> Wanted:
        """Return what is wanted of it."""
        return Wanted(
            frozenset(asked.args.get("kind", ())),
            frozenset(number_of(one, "job") for one in asked.args.get("job", ())),
            frozenset(asked.args.get("tag", ())),
        )


ARGS = (
    Arg("after", Kind.TEXT, "number of the last entry that was heard; none: from now"),
    Arg("kind", Kind.TEXTS, "events of these alone: disk, instance, node, job, …"),
    Arg("job", Kind.TEXTS, "events of this job, and of what it changes, alone"),
    Arg("tag", Kind.TEXTS, "events of objects with this tag alone"),
)


def heard(asked: Asked, header: str | None) -> int | None:
    """Return the number of the last entry that somebody heard; None for from now on.

    Raises
    ------
    HttpError
        If it is no number.
    """
    said = asked.args.get("after") if header is None else header
    return None if said is None else number_of(said, "after")


def number_of(text: str, name: str) -> int:
    """Return the number in an argument.

    Raises
    ------
    HttpError
        If it is none.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > 26:
        raise HttpError(400, f"Invalid value for the argument '{name}': {text!r}")
    return int(text)
