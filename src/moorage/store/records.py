# SPDX-License-Identifier: BSD-2-Clause
"""Records in a SQLite file: what a store, a copy of one and a look at one share."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from moorage.model.commits import Head, Key

from . import checksums
from .base import Elsewhere

SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
  kind TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL,
  sum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS head (
  version INTEGER NOT NULL, term INTEGER NOT NULL,
  total INTEGER NOT NULL DEFAULT 0, sum INTEGER NOT NULL DEFAULT 0
);
INSERT INTO head (version, term) SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM head);
"""


def opened(path: Path) -> sqlite3.Connection:
    """Open a file, made if need be; what is committed there survives a power loss."""
    path.touch(mode=0o600)
    made = sqlite3.connect(path, isolation_level=None)
    try:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = FULL")
        # What a job forgets (a node's token) is not left in free pages.
        made.execute("PRAGMA secure_delete = ON")
    except BaseException:
        made.close()
        raise
    return made


def to_read(path: Path) -> closing[sqlite3.Connection]:
    """Open a store that may be under way, to read it; nothing is changed."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return closing(sqlite3.connect(uri, uri=True, isolation_level=None))


def copied(path: Path, target: Path) -> None:
    """Copy a store as it is at one moment, to a file of its owner's alone."""
    target.touch(mode=0o600)
    with to_read(path) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)


def leave(path: Path, move: str, to: str) -> None:
    """Say in a store for good that the state is elsewhere: nobody leads on it then."""
    with closing(opened(path)) as database, at_once(database):
        database.execute("CREATE TABLE IF NOT EXISTS moved (move TEXT, place TEXT)")
        database.execute("DELETE FROM moved")
        database.execute("INSERT INTO moved VALUES (?, ?)", (move, to))


def check_here(database: sqlite3.Connection, path: Path) -> None:
    """Raise `Elsewhere` if a store says that the state was moved away."""
    known = "SELECT 1 FROM sqlite_master WHERE name = 'moved'"
    if database.execute(known).fetchone() is None:
        return
    move, to = database.execute("SELECT move, place FROM moved").fetchone()
    raise Elsewhere(
        f"the state was moved from {path} to {to}",
        hint="gnt-cluster getmaster, on a node of the cluster",
        move=move,
    )


@contextmanager
def at_once(database: sqlite3.Connection) -> Iterator[None]:
    """Do everything inside, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # SQLite itself takes some back
            database.execute("ROLLBACK")
        raise


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


def write(database: sqlite3.Connection, key: Key, value: bytes | None) -> int:
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


def put_head(database: sqlite3.Connection, head: Head) -> None:
    """Write the head, with its checksum."""
    put = "UPDATE head SET version = ?, term = ?, total = ?, sum = ?"
    database.execute(put, (*head, checksums.of_head(head)))
