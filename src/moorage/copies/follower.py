# SPDX-License-Identifier: BSD-2-Clause
"""One candidate: it gets a whole copy, then every commit, and is looked after."""

import asyncio
import logging
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.errors import BadInput, MoorageError, Stale, cause_of
from moorage.jobs import Nodes
from moorage.model import Node
from moorage.model.commits import Head, Key, Logged, Write
from moorage.protocol import (
    AddRecords,
    ApplyCommits,
    BeginCopy,
    CheckCopy,
    CopyStatus,
    GetStanding,
    KeepKeys,
    SealCopy,
    Verb,
    silent,
)
from moorage.store import ConfigStore
from moorage.store.migrations import FORMAT

from .log import CommitLog

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

_PORTION = 2 * 1024 * 1024
"""Bytes that go to a candidate at a time, more or less."""
_TOGETHER = 500
"""Commits that go to a candidate at a time at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long one waits; all in seconds.

    Attributes
    ----------
    patience
        A commit waits no longer for one candidate.
    beat
        Between two signs of life of a master that commits nothing.
    again
        Before a candidate that failed is asked again; it grows to ten times this.
    checked
        Between two times that a whole copy is read and compared.
    filling
        A commit waits no longer for one that was current under the master before, and
        catches up: as long as it gets on, longer than for one that gives no answer.
    """

    patience: float = 5.0
    filling: float = 60.0
    beat: float = 5.0
    again: float = 1.0
    checked: float = 3600.0


@dataclass(eq=False, slots=True, kw_only=True)
class Follower:
    """A candidate and its copy.

    Attributes
    ----------
    node
        As it was when somebody last changed it.
    enlist
        Puts it on record as one that commits wait for.
    wished
        Called when its node, which has all, is to be the next master.
    awaited
        Whether commits wait for it: it has caught up, or was current when the master
        before ended.
    current
        Whether it has caught up, and is on record.
    head
        Where its copy stands; None if that is not known.
    refused
        Whether it has heard a later master.
    why
        Why it is behind.
    asked
        Set when it has taken an order of this master, or was seen to take none.
    moved
        When it got on last, by the loop's clock.
    """

    node: Node
    config_store: ConfigStore
    log: CommitLog
    nodes: Nodes
    keys: Callable[[], Mapping[str, bytes]]
    pace: Pace
    enlist: Callable[[], Awaitable[None]]
    wished: Callable[[], None]
    awaited: bool = False
    current: bool = False
    head: Head | None = None
    refused: bool = False
    why: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    moved: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    _begun: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    _has: int | None = None
    _kept: Mapping[str, bytes] | None = None
    _waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    def reached(self, version: int) -> asyncio.Future[None]:
        """Return what is done when it has a commit, or nobody waits for it any more."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((version, future))
        self._tell()
        return future

    def lacks(self, version: int) -> bool:
        """Whether a commit has to wait for it."""
        return self.awaited and (self._has is None or self._has < version)

    def deadline(self, since: float) -> float:
        """Return when a commit that waits since a time waits no more (loop's clock)."""
        patience = self.pace.patience
        if self.current:
            return since + patience
        longest = max(since + patience, self._begun + self.pace.filling)
        return min(max(since, self.moved) + patience, longest)

    def fall_behind(self, why: str) -> None:
        """Let nobody wait for it until it has caught up."""
        if self.awaited or why != self.why:
            _LOG.warning(
                "the copy of the state on %s is behind: %s", self.node.name, why
            )
        self.awaited = self.current = False
        self.why = why
        self.asked.set()
        self._tell()

    def status(self) -> CopyStatus:
        """Return what is known of the copy."""
        lacking = self.log.head.version - self.head.version if self.head else None
        state = "current" if self.current else "behind" if self.why else "filling"
        return CopyStatus(
            node=self.node.uuid, state=state, commits=lacking, why=self.why
        )

    def _tell(self) -> None:
        done = [one for one in self._waiting if not self.lacks(one[0])]
        for one in done:
            self._waiting.remove(one)
            if not one[1].done():
                one[1].set_result(None)

    async def run(self) -> None:
        """Keep the copy equal to the store, for ever."""
        pause = self.pace.again
        while True:
            began = self.head
            try:
                await self._follow()
            except Stale as error:
                self.refused = self.refused or "term" in error.facts
                self.fall_behind(error.message)
            except BadInput as error:
                old = "known" in error.facts  # it lists the verbs that it has
                self.fall_behind("its agent is too old" if old else error.message)
            except MoorageError as error:
                self.fall_behind(cause_of(error))
            except Exception as error:  # noqa: BLE001 - or commits would wait in vain
                _LOG.exception("the copy on %s", self.node.name)
                self.fall_behind(f"{type(error).__name__}: {error}")
            pause = self.pace.again if self.head != began else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, self.pace.again * 10)

    async def _follow(self) -> None:
        self._kept = self._has = None
        self.head = (await self._ask(GetStanding())).copy
        checked = looked = asyncio.get_running_loop().time()
        while True:
            await self._keep_keys()
            self.asked.set()
            commits = None if self.head is None else self.log.after(self.head)
            if self.head is None or commits is None:
                await self._fill()
                continue
            await self._send(self.head, commits)
            if asyncio.get_running_loop().time() - looked >= self.pace.beat * 0.9:
                await self._look()
                looked = asyncio.get_running_loop().time()
            if asyncio.get_running_loop().time() - checked > self.pace.checked:
                await self._check()
                checked = asyncio.get_running_loop().time()

    async def _look(self) -> None:
        """See whether somebody on the node asks this master to let it lead."""
        if self.current and (await self._ask(GetStanding())).wants:
            self.wished()

    async def _send(self, head: Head, commits: Sequence[Logged]) -> None:
        """Send some commits, or a sign of life; then wait for more to come."""
        portion = list(_first(commits))
        more = len(portion) < len(commits)
        call = ApplyCommits(after=head, commits=tuple(portion), more=more)
        there = await self._ask(call)
        due = portion[-1].head if portion else head
        self.head = there if there and there.holds(due) else None
        self._has = self.head and self.head.version
        if self.head is None:
            self.fall_behind("it was not what the master had sent: it gets a new one")
            return
        if not more and self.log.head.holds(due):
            await self._caught_up()

    async def _caught_up(self) -> None:
        grown = self.log.grown
        self.awaited, self.why, self.refused = True, "", False
        self._tell()
        if not self.current:
            await self.enlist()
            self.current = self.awaited  # somebody may have lost patience meanwhile
            _LOG.info("the copy of the state on %s is whole", self.node.name)
            return  # so that it gets the record of that, too
        try:
            async with asyncio.timeout(self.pace.beat):
                await grown.wait()
        except TimeoutError:
            return

    async def _fill(self) -> None:
        """Send a whole copy; commits go on meanwhile, and are sent after it."""
        head, records = await self.log.whole()
        _LOG.info("%s gets a whole copy of the state", self.node.name)
        await self._ask(BeginCopy(format=FORMAT))
        for portion in _portions(records.items()):
            await self._ask(AddRecords(records=portion))
        self.head = await self._ask(SealCopy(head=head))

    async def _keep_keys(self) -> None:
        """Send the cluster's keys when they are others than before."""
        files = self.keys()
        if files != self._kept:
            await self._ask(KeepKeys(files=dict(files)))
            self._kept = files

    async def _check(self) -> None:
        """Let the node read its whole copy; one that is damaged is sent anew."""
        faults = await self._ask(CheckCopy())
        if faults:
            self.head = None
            self.fall_behind(f"it is damaged ({faults[0]}): it gets a new one")

    async def _ask(self, call: Verb[T]) -> T:
        answer = await self.nodes.call(self.node, call, self.config_store.term, silent)
        self.moved = asyncio.get_running_loop().time()
        return answer


def _first(commits: Iterable[Logged]) -> Iterator[Logged]:
    """Yield the first commits, as many as go together."""
    size = 0
    for number, commit in enumerate(commits):
        if number >= _TOGETHER or size > _PORTION:
            return
        size += sum(len(value or b"") for _, value in commit.writes)
        yield commit


def _portions(records: Iterable[tuple[Key, bytes]]) -> Iterator[tuple[Write, ...]]:
    portion: list[Write] = []
    size = 0
    for key, value in records:
        portion.append((key, value))
        size += len(value)
        if size > _PORTION or len(portion) >= 10_000:
            yield tuple(portion)
            portion, size = [], 0
    if portion:
        yield tuple(portion)
