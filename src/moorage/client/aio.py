# SPDX-License-Identifier: BSD-2-Clause
"""The client that holds nobody up; its methods are those of the one that blocks.

::

    from moorage.client import door
    from moorage.client.aio import AsyncClient

    async with AsyncClient(door("https://cluster.example.org:5080", token=TOKEN)) as it:
        async for entry in it.events(kinds=["disk"]):
            ...
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from moorage.api.wanted import Wanted
from moorage.errors import MoorageError

from . import asks
from .asks import AGAIN, PATIENCE, TIMEOUT, Ask, Filter, Opcode, Row, is_lost
from .blocking import Results
from .places import Door, Socket
from .told import Change, Entry, Field, Job, Table

T = TypeVar("T")


class Way(Protocol):
    """A way to the cluster."""

    async def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method of LUXI."""

    def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield what happens behind an entry; None says that somebody is there."""

    async def close(self) -> None:
        """Hang up."""


class AsyncClient:
    """As :class:`~moorage.client.Client`, for one event loop.

    Who is in the process of a door already gives a way of his own.
    """

    def __init__(
        self,
        at: Door | Socket | Way,
        *,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self._way: Way
        if isinstance(at, Door):
            from .https_aio import HttpsAio  # noqa: PLC0415 - slow to import

            self._way = HttpsAio(at, timeout)
        elif isinstance(at, Socket):
            from .luxi_aio import LuxiAio  # noqa: PLC0415 - slow to import

            self._way = LuxiAio(at, timeout)
        else:
            self._way = at
        self.patience = patience

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up; the next question connects anew."""
        await self._way.close()

    # -- looking -----------------------------------------------------------------------

    async def query(
        self, what: str, fields: Sequence[str], qfilter: Filter | None = None
    ) -> Table:
        """As :meth:`Client.query`."""
        return await self._ask(asks.query(what, fields, qfilter))

    async def query_fields(
        self, what: str, fields: Sequence[str] | None = None
    ) -> list[Field]:
        """As :meth:`Client.query_fields`."""
        return await self._ask(asks.query_fields(what, fields))

    async def info(self) -> dict[str, Any]:
        """As :meth:`Client.info`."""
        return await self._ask(asks.info())

    async def features(self) -> frozenset[str]:
        """As :meth:`Client.features`."""
        return await self._ask(asks.features())

    async def tags(self, kind: str, name: str = "") -> list[str]:
        """As :meth:`Client.tags`."""
        return await self._ask(asks.tags(kind, name))

    async def story(self, disk: str) -> dict[str, Any]:
        """As :meth:`Client.story`."""
        return await self._ask(asks.story(disk))

    async def store(self) -> dict[str, Any]:
        """As :meth:`Client.store`."""
        return await self._ask(asks.store())

    async def audit(self, after: int = 0) -> list[str]:
        """As :meth:`Client.audit`."""
        return await self._ask(asks.audit(after))

    # -- jobs --------------------------------------------------------------------------

    async def submit(self, *ops: Opcode, key: str = "") -> int:
        """As :meth:`Client.submit`."""
        found = key or asks.new_key()
        try:
            return await self._ask(asks.submit(ops, found))
        except MoorageError as error:
            if is_lost(error):
                error.facts = {**error.facts, "key": found}
            raise

    async def submit_many(
        self, jobs: Sequence[Sequence[Opcode]]
    ) -> list[int | MoorageError]:
        """As :meth:`Client.submit_many`."""
        made: list[int | MoorageError] = []
        for ops in jobs:
            try:
                made.append(await self.submit(*asks.resolved(ops, made)))
            except MoorageError as error:
                made.append(error)
                if is_lost(error):
                    break
        return [*made, *made[-1:] * (len(jobs) - len(made))]

    async def job(self, number: int) -> Job:
        """As :meth:`Client.job`."""
        return await self._ask(asks.job(number))

    async def wait(self, number: int, timeout: float | None = None) -> Job:
        """As :meth:`Client.wait`."""
        found = await self.job(number)
        if found.ended:
            return found
        stream = self.events(kinds=["job"], jobs=[number], timeout=timeout)
        async with aclosing(stream):
            async for entry in stream:
                if not entry.events and not entry.reset:
                    continue
                found = await self.job(number)
                if found.ended:
                    return found
        raise TimeoutError(f"job {number} is {found.status} after {timeout} s")

    async def run(
        self, *ops: Opcode, key: str = "", timeout: float | None = None
    ) -> Results:
        """As :meth:`Client.run`."""
        number = await self.submit(*ops, key=key)
        return (await self.wait(number, timeout)).outcome()

    async def jobs(
        self, numbers: Sequence[int] | None, fields: Sequence[str]
    ) -> Sequence[Row | None]:
        """As :meth:`Client.jobs`."""
        if numbers is not None and not numbers:
            return []
        return await self._ask(asks.jobs(numbers, fields))

    async def change(
        self,
        number: int,
        fields: Sequence[str],
        seen: Row | None = None,
        serial: int | None = None,
        timeout: float = asks.LONGEST_WAIT,
    ) -> Change | None:
        """As :meth:`Client.change`."""
        return await self._ask(asks.change(number, fields, seen, serial, timeout))

    async def cancel(self, number: int, *, kill: bool = False) -> tuple[bool, str]:
        """As :meth:`Client.cancel`."""
        return await self._ask(asks.cancel(number, kill=kill))

    async def set_priority(self, number: int, priority: int) -> tuple[bool, str]:
        """As :meth:`Client.set_priority`."""
        return await self._ask(asks.set_priority(number, priority))

    async def archive(self, number: int) -> bool:
        """As :meth:`Client.archive`."""
        return await self._ask(asks.archive(number))

    async def archive_ended(self, age: float) -> tuple[int, int]:
        """As :meth:`Client.archive_ended`."""
        return await self._ask(asks.archive_ended(age))

    # -- the cluster's chores ----------------------------------------------------------

    async def drained(self) -> bool:
        """As :meth:`Client.drained`."""
        return await self._ask(asks.drained())

    async def drain(self, *, drained: bool) -> None:
        """As :meth:`Client.drain`."""
        await self._ask(asks.drain(drained=drained))

    async def watcher_pause(self) -> float | None:
        """As :meth:`Client.watcher_pause`."""
        return await self._ask(asks.watcher_pause())

    async def pause_watcher(self, until: float | None) -> float | None:
        """As :meth:`Client.pause_watcher`."""
        return await self._ask(asks.pause_watcher(until))

    # -- what happens ------------------------------------------------------------------

    async def events(
        self,
        after: int | None = None,
        *,
        kinds: Iterable[str] = (),
        jobs: Iterable[int] = (),
        tags: Iterable[str] = (),
        timeout: float | None = None,
    ) -> AsyncGenerator[Entry, None]:
        """As :meth:`Client.events`."""
        wanted = Wanted(frozenset(kinds), frozenset(jobs), frozenset(tags))
        end = None if timeout is None else time.monotonic() + timeout
        away: float | None = None
        while end is None or time.monotonic() < end:
            try:
                async with aclosing(self._way.listen(after, wanted, end)) as stream:
                    async for entry in stream:
                        away = None
                        if entry:
                            after = entry.number
                            yield entry
            except MoorageError as error:
                away = away or time.monotonic()
                if not is_lost(error) or time.monotonic() - away >= self.patience:
                    raise
                await asyncio.sleep(AGAIN)

    async def newest(self) -> int:
        """As :meth:`Client.newest`."""
        return await self._ask(asks.newest())

    # -- what has no method of its own -------------------------------------------------

    async def call(self, method: str, *args: Any) -> Any:  # noqa: ANN401
        """As :meth:`Client.call`."""
        return await self._ask(asks.raw(method, args))

    async def _ask(self, ask: Ask[T]) -> T:
        end = time.monotonic() + self.patience
        while True:
            try:
                return ask.read(await self._way.call(ask.method, ask.args))
            except MoorageError as error:
                late = time.monotonic() >= end
                if late or not asks.may_go_again(ask, error):
                    raise
            await asyncio.sleep(AGAIN)
