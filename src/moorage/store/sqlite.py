# SPDX-License-Identifier: BSD-2-Clause
"""The default store: one SQLite file, no server.

Write-ahead log with full synchronisation: a commit is on disk before it is
acknowledged. A lock file keeps a second master away; the kernel drops it when the
holder dies, however it dies.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from moorage.errors import Conflict, Refused

from .base import Damaged, Stored, StoreError, Write

T = TypeVar("T")

_LITTLE = 1 << 20
"""Bytes; with less than this a file system counts as full."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  kind TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS head (version INTEGER NOT NULL, term INTEGER NOT NULL);
INSERT INTO head SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM head);
"""


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
        except (sqlite3.Error, OSError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> StoreError:
        """Return what went wrong, with the place where it did."""
        place = self.path.parent
        if type(error) is sqlite3.DatabaseError:  # not one of its many subclasses
            return Damaged(f"{self.path} is damaged: {error}")
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
                made.executescript(_SCHEMA)
            except sqlite3.Error:
                made.close()
                raise
            self._connection = made
        return self._connection

    def _next_term(self) -> int:
        row = self._open().execute("UPDATE head SET term = term + 1 RETURNING term")
        self._term = int(row.fetchone()[0])
        return self._term

    def _load(self) -> Stored:
        database = self._open()
        version = database.execute("SELECT version FROM head").fetchone()[0]
        rows = database.execute("SELECT kind, name, value FROM records")
        return Stored(version, {(kind, name): value for kind, name, value in rows})

    def _commit(self, writes: Sequence[Write], expected: int) -> int:
        database = self._open()
        database.execute("BEGIN IMMEDIATE")
        try:
            self._advance(database, expected)
            for (kind, name), value in writes:
                self._write(database, kind, name, value)
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # SQLite itself takes some back
                database.execute("ROLLBACK")
            raise
        return expected + 1

    def _advance(self, database: sqlite3.Connection, expected: int) -> None:
        moved = database.execute(
            "UPDATE head SET version = version + 1 WHERE version = ? AND term = ?",
            (expected, self._term),
        )
        if moved.rowcount != 1:
            raise Conflict("the store moved on, or another master leads")

    @staticmethod
    def _write(
        database: sqlite3.Connection, kind: str, name: str, value: bytes | None
    ) -> None:
        if value is None:
            where = "DELETE FROM records WHERE kind = ? AND name = ?"
            database.execute(where, (kind, name))
        else:
            put = "INSERT OR REPLACE INTO records VALUES (?, ?, ?)"
            database.execute(put, (kind, name, value))


def _room(directory: Path) -> str:
    """Return what there is to say about a directory on a full file system."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return ""
    free = found.f_bavail * found.f_frsize
    return " (its file system is full)" if free < _LITTLE else ""
