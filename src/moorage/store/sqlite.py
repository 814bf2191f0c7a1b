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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from moorage.errors import Conflict, Refused

from . import checksums
from .base import ADVICE, Damaged, Key, Stored, StoreError, Write
from .checksums import Head

T = TypeVar("T")

_LITTLE = 1 << 20
"""Bytes; with less than this a file system counts as full."""

_BEHIND = "\U0010ffff"
"""What sorts behind every text."""
FORMAT = 1
"""What SQLite keeps as the file's ``user_version``; 0 is a store without checksums."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  kind TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS head (version INTEGER NOT NULL, term INTEGER NOT NULL);
INSERT INTO head (version, term) SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM head);
"""
_SUMS = (("records", "sum"), ("head", "total"), ("head", "sum"))
"""Tables, and the columns that checksums added to them."""


class SqliteStore:
    """A store in one file.

    Parameters
    ----------
    path
        The file; made with its directory, readable by its owner alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._term = 0
        self._lock: int | None = None
        # SQLite's connection belongs to the thread that opened it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
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

    async def close(self) -> None:
        """Let go of the file and of the lead."""
        if self._connection is not None:
            await self._run(self._connection.close)
        self._thread.shutdown()
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
            self.path.touch(mode=0o600)
            made = sqlite3.connect(self.path, isolation_level=None)
            try:
                made.execute("PRAGMA journal_mode = WAL")
                made.execute("PRAGMA synchronous = FULL")
                # What a job forgets (a node's token) is not left in free pages.
                made.execute("PRAGMA secure_delete = ON")
                self._furnish(made)
            except BaseException:
                made.close()
                raise
            self._connection = made
        return self._connection

    def _furnish(self, database: sqlite3.Connection) -> None:
        """Make the tables of an empty file, and the checksums of an old store."""
        found = format_of(database)
        if found > FORMAT:
            raise damaged(self.path, f"its format {found} is of a later Moorage")
        if found < 0:
            raise damaged(self.path, f"its format {found} is no Moorage's")
        if found < FORMAT:
            database.executescript(_SCHEMA)
            with _at_once(database):
                _add_sums(database)

    def _next_term(self) -> int:
        database = self._open()
        with _at_once(database):
            head, head_sum = head_of(database)
            if head.sum() != head_sum:
                raise damaged(self.path, *checksums.faults(head, head_sum, {}, {}))
            head = head._replace(term=head.term + 1)
            _put_head(database, head)
        self._term = head.term
        return self._term

    def _load(self) -> Stored:
        database = self._open()
        head, head_sum = head_of(database)
        records, known = records_of(database)
        found = list(checksums.faults(head, head_sum, records, known))
        if found:
            raise damaged(self.path, *found)
        return Stored(head.version, records)

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
        with _at_once(database):
            head, _ = head_of(database)
            if (head.version, head.term) != (expected, self._term):
                raise Conflict("the store moved on, or another master leads")
            changed = (_write(database, key, value) for key, value in writes)
            total = checksums.combined((head.total, *changed))
            _put_head(database, Head(expected + 1, self._term, total))
        return expected + 1


# -- the file --------------------------------------------------------------------------


def damaged(path: Path, *faults: str) -> Damaged:
    """Return the error of a store that does not hold what was written into it."""
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    said = "; ".join(faults[:3])
    return Damaged(f"{path} is damaged: {said}{more}", hint=ADVICE)


def format_of(database: sqlite3.Connection) -> int:
    """Return the number of the store's format."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def head_of(database: sqlite3.Connection) -> tuple[Head, Any]:
    """Return the head, and the checksum that stands beside it."""
    found = database.execute("SELECT version, term, total, sum FROM head").fetchall()
    if len(found) != 1:
        raise sqlite3.DatabaseError(f"it has {len(found)} heads")
    version, term, total, head_sum = found[0]
    return Head(version, term, total), head_sum


def records_of(database: sqlite3.Connection) -> tuple[dict[Key, bytes], dict[Key, Any]]:
    """Return all records, and the checksums that stand beside them."""
    rows = database.execute("SELECT kind, name, value, sum FROM records").fetchall()
    records = {(kind, name): value for kind, name, value, _ in rows}
    return records, {(kind, name): one for kind, name, _, one in rows}


@contextmanager
def _at_once(database: sqlite3.Connection) -> Iterator[None]:
    """Do everything inside, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # SQLite itself takes some back
            database.execute("ROLLBACK")
        raise


def _write(database: sqlite3.Connection, key: Key, value: bytes | None) -> int:
    """Write a record; return by what it changes the combination of all checksums."""
    where = "FROM records WHERE kind = ? AND name = ?"
    found = database.execute(f"SELECT sum {where}", key).fetchone()
    old = found[0] if found else 0
    if value is None:
        database.execute(f"DELETE {where}", key)
        return int(old)
    new = checksums.of_record(key, value)
    put = "INSERT OR REPLACE INTO records (kind, name, value, sum) VALUES (?, ?, ?, ?)"
    database.execute(put, (*key, value, new))
    return checksums.combined((old, new))


def _put_head(database: sqlite3.Connection, head: Head) -> None:
    put = "UPDATE head SET version = ?, term = ?, total = ?, sum = ?"
    database.execute(put, (*head, head.sum()))


def _add_sums(database: sqlite3.Connection) -> None:
    """Give each record and the head of an older store its checksum."""
    for table, column in _SUMS:
        known = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if column not in known:
            add = f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0"
            database.execute(add)
    head, _ = head_of(database)
    records, _ = records_of(database)
    known_sums = {
        key: checksums.of_record(key, value) for key, value in records.items()
    }
    put = "UPDATE records SET sum = ? WHERE kind = ? AND name = ?"
    database.executemany(put, ((one, *key) for key, one in known_sums.items()))
    _put_head(database, head._replace(total=checksums.combined(known_sums.values())))
    database.execute(f"PRAGMA user_version = {FORMAT}")


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
