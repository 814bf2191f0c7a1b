# SPDX-License-Identifier: BSD-2-Clause
"""The queue: every job as the store has it, and those who wait for one to change.

A job under way is worked on in a copy of its own. What others see is the copy that was
stored last, so nobody is told of a state that a crash could take back. Progress, the
log, and whether a queued job waits for locks, are talk: they are shown at once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.errors import NotFound
from moorage.model import Change
from moorage.model.audit import ARCHIVE, DRAIN, PRIORITY, UNDRAIN, Deed, deed
from moorage.model.caller import MASTER, Caller
from moorage.model.events import ADDED, CHANGED, JOB, REMOVED, Event
from moorage.model.story import NOTHING, Occasion
from moorage.store import ConfigStore, Write, believed, whole

from . import archive, audited, journal, repeats
from .archive import Archive
from .job import WAITING, Job, Op, dependencies, stamp
from .journal import Journal, Records
from .measures import Measures
from .repeats import Repeats
from .secrets import forget

LONGEST_LOG = 1000
"""Entries of one operation's log; what comes after them is left out."""
_REPEATED = 3
"""How often one and the same line is logged among the last lines of a log."""
_LAST_LINES = 20


class Kept(NamedTuple):
    """What a store holds of jobs, those in the order of their numbers."""

    jobs: list[Job]
    last: int
    keys: dict[str, repeats.Made]


def read(records: Records) -> Kept:
    """Return what a store holds of jobs.

    Raises
    ------
    Damaged
        If a record is none of ours.
    """
    keys = {
        name: believed(f"key {name} of requests", partial(repeats.decoded, one))
        for name, one in records.get(repeats.KIND, {}).items()
    }
    last = records.get("queue", {}).get("last", b"0")
    number = believed("the last job's number", partial(whole, last))
    return Kept(journal.read(records), number, keys)


class Queue:
    """The jobs.

    Parameters
    ----------
    clock
        The time in seconds.
    patience
        Seconds after which a job says what it waits for.

    Attributes
    ----------
    jobs
        The jobs as the store has them, by number.
    working
        The copies that are worked on, of those that have not ended.
    draining
        Whether new jobs are refused.
    repeats
        The requests that may come twice, and what they made.
    archived
        The jobs that were put away, and are kept for a while.
    measures
        How long things took since the master began.
    """

    def __init__(
        self, config_store: ConfigStore, clock: Callable[[], float], patience: float
    ) -> None:
        self.jobs: dict[int, Job] = {}
        self.working: dict[int, Job] = {}
        self.draining = False
        self.repeats = Repeats(clock)
        self.archived = Archive(config_store)
        self.measures = Measures()
        self._config_store = config_store
        self._clock = clock
        self._patience = patience
        self._last = 0
        self._journal = Journal()
        self._statuses: dict[int, str] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self._changed: dict[int, asyncio.Event] = {}
        self._progress: dict[int, dict[str, Any]] = {}

    def load(self, records: Records) -> list[Job]:
        """Take over what the store holds; return the jobs that have not ended.

        One whose last operation has, and that a crash kept from being closed, is among
        them.

        Raises
        ------
        Damaged
            If a record is none of ours.
        """
        kept = read(records)
        self.draining = "draining" in records.get("queue", {})
        self.repeats.load(kept.keys)
        self.archived.load(records.get(archive.KIND, {}))
        found = kept.jobs
        self._journal.load(found, records)
        self.jobs = {job.id: job for job in found}
        self._statuses = {job.id: job.status for job in found}
        self._last = max([kept.last, *self.jobs])
        left = [job for job in found if job.end_timestamp is None]
        for job in left:
            self.working[job.id] = job
            self.jobs[job.id] = _copy(job)
        return left

    def number(self) -> int:
        """Return the number of the next job; none is given twice."""
        self._last += 1
        return self._last

    async def add(
        self, jobs: Sequence[Job], *with_: Job, more: Sequence[Write] = ()
    ) -> None:
        """Store new jobs, together with the state of others that brought them.

        Parameters
        ----------
        more
            Other records of the same commit.
        """
        last: Write = (("queue", "last"), b"%d" % self._last)
        await self._write([*jobs, *with_], None, [last, *more])
        self.working.update({job.id: job for job in jobs})

    def turn(self, job: Job) -> asyncio.Lock:
        """Return the lock under which a job changes and is written: one at a time.

        Nothing else could write what somebody is about to take back.
        """
        return self._turns.setdefault(job.id, asyncio.Lock())

    async def save(self, job: Job) -> None:
        """Store a job as it is, and tell."""
        async with self.turn(job):
            await self.write(job)

    async def write(
        self, job: Job, change: Change | None = None, occasion: Occasion = NOTHING
    ) -> None:
        """Store a job, and a change of the configuration with it; in its turn only.

        Raises
        ------
        Conflict
            As :meth:`ConfigStore.commit`; nothing is stored or told.
        """
        await self._write([job], change, occasion=occasion)

    async def _write(
        self,
        jobs: Sequence[Job],
        change: Change | None,
        more: Sequence[Write] = (),
        occasion: Occasion = NOTHING,
        deeds: Sequence[Deed] = (),
    ) -> None:
        for job in jobs:
            forget(job)
        copies = [_copy(job) for job in jobs]  # they may go on meanwhile
        remarks: list[str] = []
        records = [*chain.from_iterable(map(self._journal.writes, jobs)), *more]
        if occasion is NOTHING:
            first = jobs[0]
            by = str(first.caller)
            occasion = Occasion(time=self._clock(), job=first.id, by=by)
        told = list(self._events(jobs))
        done = [*audited.deeds(jobs, told, self._clock()), *deeds]
        await self._config_store.commit(change, records, occasion, remarks, told, done)
        self._statuses |= {event.job: event.status for event in told}
        for copy in copies:
            self._journal.note(copy)
        if remarks:  # they are part of what these jobs have to say, for good
            for job in copies:
                for text in remarks:
                    self.note(job, job.current, text)
            said = chain.from_iterable(map(self._journal.writes, copies))
            await self._config_store.commit(None, [*said])
        for copy in copies:
            self._show(copy)

    def _events(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Yield what becomes of jobs that are about to be stored."""
        for job in jobs:
            status, before = job.status, self._statuses.get(job.id)
            if status != before:
                what = ADDED if before is None else CHANGED
                yield _event(what, job, status)

    def over(self, job: Job) -> None:
        """Forget what only a job under way needs."""
        for known in (self.working, self._turns, self._progress):
            known.pop(job.id, None)

    async def asks(self, caller: Caller, what: str, number: int) -> None:
        """Tell the audit log what somebody asks of a job, before it is done."""
        job = self.working.get(number)
        if job is None:
            return
        about = ", ".join(op.summary for op in job.ops)[: audited.LONGEST]
        done = deed(caller, self._clock(), what, job=job.id, about=about)
        await self._config_store.commit(None, deeds=[done])

    async def put(self, job: Job, priority: int, caller: Caller) -> None:
        """Give a job another priority."""
        async with self.turn(job):
            if job.priority == priority:
                return  # nothing is to be told, however often it is asked for
            job.priority = priority
            said = {"job": job.id, "status": str(priority)}
            done = deed(caller, self._clock(), PRIORITY, **said)
            await self._write([job], None, deeds=[done])

    async def archive(self, number: int, caller: Caller = MASTER) -> bool:
        """Put a job away, unless it, or one that depends on it, has not ended."""
        open_ = self.working.values()
        awaited = any(number == n for job in open_ for n, _ in dependencies(job))
        if not self.job(number).finished or awaited:
            return False
        job = self.job(number)
        async with self.turn(job):
            if number in self.jobs:  # nobody else was faster
                await self._put_away(job, caller)
        self._turns.pop(number, None)
        return True

    async def _put_away(self, job: Job, caller: Caller) -> None:
        gone = [_event(REMOVED, job, job.status)]
        now = Occasion(time=self._clock())
        kept = self.archived.writes(job, now.time)
        done = [] if job.looks else [deed(caller, now.time, ARCHIVE, job=job.id)]
        records = [*self._journal.drops(job), *kept]
        await self._config_store.commit(None, records, now, jobs=gone, deeds=done)
        self.archived.note(kept)
        self._journal.forget(job)
        for known in (self.jobs, self._statuses, self._changed):
            known.pop(job.id, None)

    async def drain(self, *, draining: bool, caller: Caller = MASTER) -> None:
        """Refuse new jobs from now on, or take them again; a restart keeps that."""
        flag = b"1" if draining else None
        done = deed(caller, self._clock(), DRAIN if draining else UNDRAIN)
        await self._config_store.commit(
            None, [(("queue", "draining"), flag)], deeds=[done]
        )
        self.draining = draining

    # -- what is told -------------------------------------------------------------

    def counts(self) -> Counter[str]:
        """Return how many jobs there are of each status."""
        found = Counter(self._statuses.values())
        for number in self.working:  # these tell more than what is stored
            if number in self._statuses:
                found[self._statuses[number]] -= 1
                found[self.jobs[number].status] += 1
        return +found

    def ages(self) -> dict[str, float]:
        """Return for how many seconds the oldest job of each status has been there."""
        now, found = self._clock(), dict[str, float]()
        for number in self.working:
            job = self.jobs[number]
            since = job.received_timestamp or (now, 0)
            found[job.status] = max(found.get(job.status, 0.0), now - since[0])
        return found

    def job(self, number: int) -> Job:
        """Return a job by its number, as it is stored."""
        try:
            return self.jobs[number]
        except KeyError:
            raise NotFound(f"job {number} is not known", hint="gnt-job list") from None

    def waits(self, job: Job, op: Op) -> None:
        """Show that an operation waits for locks; to the store it is still queued."""
        op.status = WAITING
        self._show(_copy(job))

    def note(self, job: Job, op: Op, text: str) -> None:
        """Add an entry to an operation's log; it is stored with the next step."""
        recent = [entry[3] for entry in op.log[-_LAST_LINES:]]
        if recent.count(text) >= _REPEATED or len(op.log) >= LONGEST_LOG:
            return
        if len(op.log) == LONGEST_LOG - 1:
            text = "The log is full: what follows is left out"
        serial = max((each.log[-1][0] for each in job.ops if each.log), default=0)
        op.log.append((serial + 1, stamp(self._clock()), "message", text))
        self._tell(job.id)

    @contextmanager
    def saying(self, job: Job, op: Op, what: str | Callable[[], str]) -> Iterator[None]:
        """Let the job's log say what it waits for, if that lasts long."""

        def say() -> None:
            self.note(job, op, what if isinstance(what, str) else what())

        timer = asyncio.get_running_loop().call_later(self._patience, say)
        try:
            yield
        finally:
            timer.cancel()

    def progress(self, job: Job, done: int, total: int, unit: str, note: str) -> None:
        """Show how far the task under way has come."""
        told = {"done": done, "total": total, "unit": unit, "note": note}
        self._progress[job.id] = told
        self._tell(job.id)

    def progress_of(self, number: int) -> dict[str, Any] | None:
        """Return how far the task under way has come: done, total, unit, note."""
        return self._progress.get(number)

    async def changed(self, number: int, patience: float) -> bool:
        """Wait until anything about a job changes; False after `patience` seconds."""
        event = self._changed.setdefault(number, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), patience)
        except TimeoutError:
            return False
        return True

    def _show(self, copy: Job) -> None:
        self.jobs[copy.id] = copy
        self._tell(copy.id)

    def _tell(self, number: int) -> None:
        event = self._changed.pop(number, None)
        if event is not None:
            event.set()


def _event(what: str, job: Job, status: str) -> Event:
    summary = ", ".join(op.summary for op in job.ops)
    return Event(kind=JOB, event=what, job=job.id, status=status, summary=summary)


def _copy(job: Job) -> Job:
    """Return a copy that does not follow the job, but for its log."""
    ops = [replace(op, results=list(op.results)) for op in job.ops]
    return replace(job, ops=ops)
