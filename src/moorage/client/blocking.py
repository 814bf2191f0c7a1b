# SPDX-License-Identifier: BSD-2-Clause
"""The client that blocks."""

import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from moorage.api.wanted import Wanted
from moorage.errors import MoorageError

from . import asks
from .asks import AGAIN, PATIENCE, TIMEOUT, Ask, Filter, Opcode, Row, is_lost
from .places import Door, Socket
from .told import Change, Entry, Field, Job, Table

T = TypeVar("T")
Results: TypeAlias = Sequence[Any]


class _Way(Protocol):
    """A way to the cluster."""

    def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method of LUXI."""

    def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> Iterator[Entry | None]:
        """Yield what happens behind an entry; None says that somebody is there."""

    def close(self) -> None:
        """Hang up."""


class Client:
    """Asks a cluster, and waits for the answers; threads may share one.

    What only looks, and what has a key, is sent again when an answer is lost or nobody
    is there, as long as `patience` lasts; everything else is sent once.

    Parameters
    ----------
    at
        Where the cluster is.
    timeout
        Seconds without a word after which an answer is given up.
    patience
        Seconds that a door or a master may be away; it can be set anew.

    Raises
    ------
    BadInput
        If the certificates that are to be believed cannot be read.
    """

    def __init__(
        self,
        at: Door | Socket,
        *,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self._way: _Way
        if isinstance(at, Door):
            from .https import Https  # noqa: PLC0415 - start-up time

            self._way = Https(at, timeout)
        else:
            from .luxi import Luxi  # noqa: PLC0415 - start-up time

            self._way = Luxi(at, timeout)
        self.patience = patience

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the next question connects anew."""
        self._way.close()

    # -- looking -----------------------------------------------------------------------

    def query(
        self, what: str, fields: Sequence[str], qfilter: Filter | None = None
    ) -> Table:
        """Return fields of all objects of a kind, or of those that a filter fits.

        Parameters
        ----------
        what
            ``instance``, ``disk``, ``node``, ``group``, ``network``, ``pool``, ``job``

        Raises
        ------
        NotFound
            If a filter names an object that there is not.
        """
        return self._ask(asks.query(what, fields, qfilter))

    def query_fields(
        self, what: str, fields: Sequence[str] | None = None
    ) -> list[Field]:
        """Return which fields a kind of objects has, or some of them."""
        return self._ask(asks.query_fields(what, fields))

    def info(self) -> dict[str, Any]:
        """Return the cluster's settings."""
        return self._ask(asks.info())

    def features(self) -> frozenset[str]:
        """Return the names of what a program may rely on."""
        return self._ask(asks.features())

    def tags(self, kind: str, name: str = "") -> list[str]:
        """Return the tags of an object, sorted; the cluster has no name."""
        return self._ask(asks.tags(kind, name))

    def story(self, disk: str) -> dict[str, Any]:
        """Return what happened to a disk, which may be gone."""
        return self._ask(asks.story(disk))

    def store(self) -> dict[str, Any]:
        """Return where the state is kept, who leads, and what needs somebody there.

        Returns
        -------
        ``engine`` is ``sqlite`` or ``etcd``; ``members`` have ``name``, ``up``, and
        ``size`` and ``quota`` in bytes; ``troubles`` have ``said``, a ``command`` to
        type, and ``urgent``. ``master`` leads in ``term``, since a time in seconds.
        """
        return self._ask(asks.store())

    def audit(self, after: int = 0) -> list[str]:
        """Return who had what changed: lines of JSON behind an entry, at most 500."""
        return self._ask(asks.audit(after))

    # -- jobs --------------------------------------------------------------------------

    def submit(self, *ops: Opcode, key: str = "") -> int:
        """Make a job of operations; return its number.

        Parameters
        ----------
        key
            The request's own name, 1 to 255 printable characters of ASCII: whoever
            asks again with it within a day gets the job that it made before. One is
            drawn where none is given; an error that leaves it open whether there is a
            job has it as the fact ``key``.

        Raises
        ------
        BadInput
            If an operation is off: there is no job.
        Conflict
            If the key was another request's.
        """
        found = key or asks.new_key()
        try:
            return self._ask(asks.submit(ops, found))
        except MoorageError as error:
            if is_lost(error):
                error.facts = {**error.facts, "key": found}
            raise

    def submit_many(self, jobs: Sequence[Sequence[Opcode]]) -> list[int | MoorageError]:
        """Make jobs, one after the other; return the number of each, or why not.

        A job that depends on -1 does so on the one before it in the list, and so on. A
        refusal does not hold the others up.
        """
        made: list[int | MoorageError] = []
        for ops in jobs:
            try:
                made.append(self.submit(*asks.resolved(ops, made)))
            except MoorageError as error:
                made.append(error)
                if is_lost(error):
                    break
        return [*made, *made[-1:] * (len(jobs) - len(made))]

    def job(self, number: int) -> Job:
        """Return how a job stands; raise `NotFound` if there is none."""
        return self._ask(asks.job(number))

    def wait(self, number: int, timeout: float | None = None) -> Job:
        """Wait for a job to end, by what the cluster tells of it; return it.

        Raises
        ------
        TimeoutError
            If it has not ended after so many seconds.
        NotFound
            If there is no such job.
        """
        found = self.job(number)
        if found.ended:
            return found
        for entry in self.events(kinds=["job"], jobs=[number], timeout=timeout):
            if not entry.events and not entry.reset:
                continue
            found = self.job(number)
            if found.ended:
                return found
        raise TimeoutError(f"job {number} is {found.status} after {timeout} s")

    def run(self, *ops: Opcode, key: str = "", timeout: float | None = None) -> Results:
        """Make a job of operations, wait for its end; return their results.

        Raises
        ------
        MoorageError
            As :meth:`submit` does, or as the job ended; its fact ``job`` is the number.
        TimeoutError
            If it has not ended after so many seconds.
        """
        return self.wait(self.submit(*ops, key=key), timeout).outcome()

    def jobs(
        self, numbers: Sequence[int] | None, fields: Sequence[str]
    ) -> Sequence[Row | None]:
        """Return fields of jobs, of all where none is named; None for an unknown one.

        For ``jobs([7, 8], ["status"])`` that is ``[["success"], None]``, if there is no
        job 8.
        """
        if numbers is not None and not numbers:
            return []
        return self._ask(asks.jobs(numbers, fields))

    def change(
        self,
        number: int,
        fields: Sequence[str],
        seen: Row | None = None,
        serial: int | None = None,
        timeout: float = asks.LONGEST_WAIT,
    ) -> Change | None:
        """Wait until a job differs from what was seen of it; None if it does not.

        For who shows a job's log and its progress; :meth:`wait` is for its end.

        Parameters
        ----------
        seen
            Values of the fields; None for nothing.
        serial
            Number of the last entry of the log that was seen.
        timeout
            Seconds, at most `LONGEST_WAIT`; a door waits ten.
        """
        return self._ask(asks.change(number, fields, seen, serial, timeout))

    def cancel(self, number: int, *, kill: bool = False) -> tuple[bool, str]:
        """Cancel a job; return whether it will end, and a sentence.

        Parameters
        ----------
        kill
            Whether the script that it waits for is ended, too.
        """
        return self._ask(asks.cancel(number, kill=kill))

    def set_priority(self, number: int, priority: int) -> tuple[bool, str]:
        """Change when a job gets its turn, -20 first and 19 last.

        Returns whether it has not ended, and a sentence.
        """
        return self._ask(asks.set_priority(number, priority))

    def archive(self, number: int) -> bool:
        """Put a job away; False if it, or one that depends on it, has not ended."""
        return self._ask(asks.archive(number))

    def archive_ended(self, age: float) -> tuple[int, int]:
        """Put away jobs that ended `age` seconds ago, all of them if it is negative.

        Returns how many, and how many are left for the next time.
        """
        return self._ask(asks.archive_ended(age))

    # -- the cluster's chores ----------------------------------------------------------

    def drained(self) -> bool:
        """Return whether new jobs are refused."""
        return self._ask(asks.drained())

    def drain(self, *, drained: bool) -> None:
        """Refuse new jobs from now on, or take them again."""
        self._ask(asks.drain(drained=drained))

    def watcher_pause(self) -> float | None:
        """Return until when the watcher does nothing, in seconds; None for no pause."""
        return self._ask(asks.watcher_pause())

    def pause_watcher(self, until: float | None) -> float | None:
        """Let the watcher do nothing until some time, in seconds; None: go on."""
        return self._ask(asks.pause_watcher(until))

    # -- what happens ------------------------------------------------------------------

    def events(
        self,
        after: int | None = None,
        *,
        kinds: Iterable[str] = (),
        jobs: Iterable[int] = (),
        tags: Iterable[str] = (),
        timeout: float | None = None,
    ) -> Iterator[Entry]:
        """Yield what happens, each entry once and in order, also over other masters.

        The first entry is a `reset` where no number was given, or what followed it is
        not kept any more. An entry without events says how far the feed is, where
        nothing in it was wanted.

        Parameters
        ----------
        after
            Number of the last entry that was heard; None for from now on.
        kinds, jobs, tags
            What is wanted: kinds of objects, or ``job``; what concerns these jobs; what
            has one of these tags. All of it where they are empty.
        timeout
            Seconds after which it ends; None for never.

        Raises
        ------
        NoMaster, Unreachable
            If nobody tells anything for as long as `patience`.
        """
        wanted = Wanted(frozenset(kinds), frozenset(jobs), frozenset(tags))
        end = None if timeout is None else time.monotonic() + timeout
        away: float | None = None
        while end is None or time.monotonic() < end:
            try:
                for entry in self._way.listen(after, wanted, end):
                    away = None
                    if entry:
                        after = entry.number
                        yield entry
            except MoorageError as error:
                away = away or time.monotonic()
                if not is_lost(error) or time.monotonic() - away >= self.patience:
                    raise
                time.sleep(AGAIN)

    def newest(self) -> int:
        """Return the number of the newest entry of what happens."""
        return self._ask(asks.newest())

    # -- what has no method of its own -------------------------------------------------

    def call(self, method: str, *args: Any) -> Any:  # noqa: ANN401
        """Return the result of a method of LUXI that only looks, as it comes.

        Raises
        ------
        NotSupported
            If the cluster is behind a door that has no resource for it.
        """
        return self._ask(asks.raw(method, args))

    def _ask(self, ask: Ask[T]) -> T:
        end = time.monotonic() + self.patience
        while True:
            try:
                return ask.read(self._way.call(ask.method, ask.args))
            except MoorageError as error:
                late = time.monotonic() >= end
                if late or not asks.may_go_again(ask, error):
                    raise
            time.sleep(AGAIN)
