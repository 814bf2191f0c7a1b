# SPDX-License-Identifier: BSD-2-Clause
"""The default store: one SQLite file, no server.

Write-ahead log with full synchronisation: a commit is on disk before it is
acknowledged. A lock file keeps a second master away; the kernel drops it when the
holder dies, however it dies. Records carry checksums, and what does not fit its own is
not loaded.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from moorage.errors import Conflict, Refused
from moorage.model.commits import Head, Key, Write

from . import checksums
from .base import ADVICE, Damaged, Stored, StoreError
from .migrations import furnish
from .records import at_once, head_of, opened, put_head, records_of, to_read, write

T = TypeVar("T")

_LITTLE = 1 << 20
"""Bytes; with less than this a file system counts as full."""

_BEHIND = "\U0010ffff"
"""What sorts behind every text."""


class SqliteStore:
    """A store in one file.

    Parameters
    ----------
    path
        The file; made with its directory, readable by its owner alone.

    Attributes
    ----------
    head
        What the last commit made, or else the taking of the lead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head = Head(0, 0, 0)
        self._lock: int | None = None
        self._thread = _thread()
        self._connection: sqlite3.Connection | None = None

    async def lead(self) -> int:
        """Become the only writer; return the term."""
        if self._lock is None:
            self._lock = self._locked()
        return await self._run(self._next_term)

    async def load(self) -> Stored:
        """Return all records."""
        return await self._run(self._load)

    async def read(self, kind: str, prefix: str) -> Mapping[str, bytes]:
        """Return the records of a kind whose names begin with `prefix`, by name."""
        return await self._run(lambda: self._read(kind, prefix))

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Apply `writes` at version `expected`; return the new version."""
        return await self._run(lambda: self._commit(writes, expected))

    async def whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        """Return all records, and the head that they belong to.

        It holds up no commit, and works on a store that is under way.
        """
        try:
            return await asyncio.to_thread(self._whole)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise self._failure(error) from error

    def look(self) -> None:
        """Do nothing: the lead lasts as long as the process."""

    async def close(self) -> None:
        """Let go of the file and of the lead."""
        if self._connection is not None:
            await self._run(self._connection.close)
            self._connection = None
        self._thread.shutdown()
        self._thread = _thread()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> StoreError:
        """Return what went wrong, with the place where it did."""
        place = self.path.parent
        if _lasting(error):
            return damaged(self.path, str(error))
        return StoreError(f"the store in {place}{_room(place)}: {error}")

    def _locked(self) -> int:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise Refused(
                f"another master leads on {self.path}", hint="stop it first"
            ) from None
        return lock

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            made = opened(self.path)
            try:
                furnish(made, self.path)
            except BaseException:
                made.close()
                raise
            self._connection = made
        return self._connection

    def _next_term(self) -> int:
        database = self._open()
        with at_once(database):
            head, head_sum = head_of(database)
            if checksums.of_head(head) != head_sum:
                raise damaged(self.path, *checksums.faults(head, head_sum, {}, {}))
            head = head._replace(term=head.term + 1)
            put_head(database, head)
        self.head = head
        return head.term

    def _load(self) -> Stored:
        database = self._open()
        head, head_sum = head_of(database)
        records, known = records_of(database)
        found = list(checksums.faults(head, head_sum, records, known))
        if found:
            raise damaged(self.path, *found)
        return Stored(head.version, records)

    def _whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        with to_read(self.path) as database:
            database.execute("BEGIN")
            return head_of(database)[0], records_of(database)[0]

    def _read(self, kind: str, prefix: str) -> dict[str, bytes]:
        where = "kind = ? AND name >= ? AND name < ?"
        select = f"SELECT name, value, sum FROM records WHERE {where}"  # noqa: S608
        rows = self._open().execute(select, (kind, prefix, prefix + _BEHIND)).fetchall()
        records = {(kind, name): value for name, value, _ in rows}
        sums = {(kind, name): one for name, _, one in rows}
        found = list(checksums.misfits(records, sums))
        if found:
            raise damaged(self.path, *found)
        return {name: value for name, value, _ in rows}

    def _commit(self, writes: Sequence[Write], expected: int) -> int:
        database = self._open()
        with at_once(database):
            head, _ = head_of(database)
            if (head.version, head.term) != (expected, self.head.term):
                raise Conflict("the store moved on, or another master leads")
            changed = (write(database, key, value) for key, value in writes)
            total = checksums.combined((head.total, *changed))
            new = Head(expected + 1, head.term, total)
            put_head(database, new)
        self.head = new
        return new.version


def _thread() -> ThreadPoolExecutor:
    """Return a thread to work in: a connection belongs to the one that opened it."""
    return ThreadPoolExecutor(1, thread_name_prefix="store")


def damaged(path: Path, *faults: str) -> Damaged:
    """Return the error of a store that does not hold what was written into it."""
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    said = "; ".join(faults[:3])
    return Damaged(f"{path} is damaged: {said}{more}", hint=ADVICE)


def _lasting(error: Exception) -> bool:
    """Whether an error means that what is there is no store, rather than no room."""
    # A text that is none, or an error that is not one of the many subclasses.
    if isinstance(error, UnicodeError) or type(error) is sqlite3.DatabaseError:
        return True
    # What SQLite cannot do with the tables that it finds, and not with the disk.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_ERROR


def _room(directory: Path) -> str:
    """Return what there is to say about a directory on a full file system."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return ""
    free = found.f_bavail * found.f_frsize
    return " (its file system is full)" if free < _LITTLE else ""


def lay(path: Path, head: Head, records: Mapping[Key, bytes]) -> None:
    """Make a store that holds what another one does; nobody leads it."""
    path.unlink(missing_ok=True)
    with closing(opened(path)) as database:
        furnish(database, path)
        with at_once(database):
            changed = (write(database, key, one) for key, one in records.items())
            total = checksums.combined(changed)
            if total != head.total:
                raise damaged(path, "it did not become what it was made from")
            put_head(database, head)


def raise_term(path: Path, term: int) -> None:
    """Let the next master of a store count a higher term than `term`."""
    with closing(opened(path)) as database:
        furnish(database, path)
        with at_once(database):
            head, _ = head_of(database)
            put_head(database, head._replace(term=max(term, head.term)))
