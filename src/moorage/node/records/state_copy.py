# SPDX-License-Identifier: BSD-2-Clause
"""A copy of the master's store: nobody leads it, and it follows commit by commit.

A new copy is filled beside the old one, which serves until the new one is whole: each
has a directory of its own, and a small file says which one counts.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from moorage import durable
from moorage.errors import Failed, WrongState
from moorage.model.commits import Head, Key, Logged, Write
from moorage.protocol import Portion
from moorage.store import checksums
from moorage.store.records import (
    SCHEMA,
    at_once,
    head_of,
    opened,
    put_head,
    records_of,
    write,
)

from . import audit_copy

_NAME = "state.sqlite"
_BEHIND = (
    "SELECT kind, name, value FROM records WHERE (kind, name) > (?, ?) "
    "ORDER BY kind, name"
)
_PORTION = 2 * 1024 * 1024
"""Bytes that are read at a time, more or less."""


class StateCopy:
    """The copies of one directory; every method works on the disk, and may take long.

    Parameters
    ----------
    directory
        Where they are.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: sqlite3.Connection | None = None

    @property
    def path(self) -> Path | None:
        """The file of the copy that is whole; None if there is none."""
        try:
            name = (self._directory / "current").read_text().strip()
        except FileNotFoundError:
            return None
        return self._directory / name / _NAME

    def head(self) -> Head | None:
        """Return where the copy stands; None if there is none that can be read."""
        try:
            database = self._database()
            return head_of(database)[0] if database else None
        except sqlite3.Error:
            return None  # the master sends a new one

    def apply(self, commits: Sequence[Logged], after: Head) -> Head | None:
        """Make the copy follow some commits; return where it stands then.

        It is unchanged if it does not stand at `after`, or if what comes of a commit
        is not what the master has. One that is damaged stands nowhere.
        """
        try:
            database = self._database()
            if database is not None and head_of(database)[0].holds(after):
                with at_once(database):
                    for commit in commits:
                        _follow(database, commit)
        except _OtherError:
            pass
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # of the disk, not the data
                raise
            self.close()
            return None
        return self.head()

    def begin(self, number: int) -> None:
        """Begin a new copy, of a store of a format; the old one goes on to count."""
        draft = self._draft
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700, parents=True)
        with closing(opened(draft / _NAME)) as database:
            database.executescript(SCHEMA)
            database.execute(f"PRAGMA user_version = {number:d}")

    def add(self, records: Iterable[Write]) -> None:
        """Add records to the copy that was begun.

        Raises
        ------
        WrongState
            If none was.
        """
        with closing(self._drafted()) as database, at_once(database):
            for key, value in records:
                write(database, key, value)

    def seal(self, head: Head) -> Head:
        """Let the copy that was begun be the one that counts.

        Raises
        ------
        WrongState
            If none was begun.
        Failed
            If its records are not the ones of `head`.
        """
        with closing(self._drafted()) as database:
            _, sums = records_of(database)
            if checksums.combined(sums.values()) != head.total:
                raise Failed("the copy of the state is not what the master sent")
            with at_once(database):
                put_head(database, head)
            self._keep_audit(database)
        self.close()
        old, name = self.path, f"copy-{head.version}-{head.term}-{os.urandom(4).hex()}"
        self._draft.rename(self._directory / name)
        durable.sync(self._directory)
        durable.write(self._directory / "current", f"{name}\n".encode())
        if old:
            shutil.rmtree(old.parent, ignore_errors=True)
        return head

    def _keep_audit(self, new: sqlite3.Connection) -> None:
        """Keep the audit log of this copy if a new one does not go on from it."""
        try:
            old = self._database()
            lines = audit_copy.lost(old, new) if old else []
        except sqlite3.Error:
            return  # it is damaged, and is sent anew for that
        if lines:
            audit_copy.keep(self._directory.parent / "audit", lines)

    def portion(self, after: Key) -> Portion:
        """Return the records behind one, as many as go together.

        Raises
        ------
        WrongState
            If there is no copy.
        """
        database = self._database()
        if database is None:
            raise WrongState("there is no copy of the state here")
        found: list[Write] = []
        size = 0
        for kind, name, value in database.execute(_BEHIND, after):
            if size > _PORTION:
                return Portion(head=head_of(database)[0], records=(*found,), more=True)
            found.append(((kind, name), value))
            size += len(value) + 100
        return Portion(head=head_of(database)[0], records=(*found,))

    def faults(self) -> list[str]:
        """Read the whole copy, and return what does not fit its checksums."""
        database = self._database()
        if database is None:
            return ["there is none"]
        try:
            (told,) = database.execute("PRAGMA quick_check(1)").fetchone()
            broken = [] if told == "ok" else [str(told)]
            return [
                *broken,
                *checksums.faults(*head_of(database), *records_of(database)),
            ]
        except (sqlite3.Error, UnicodeError) as error:
            return [str(error)]

    def drop(self, *, keep_keys: bool = False) -> None:
        """Forget all copies, and the keys beside them if they are not to stay."""
        self.close()
        if not keep_keys:
            shutil.rmtree(self._directory, ignore_errors=True)
            return
        durable.remove(self._directory / "current")  # from now on there is none
        for one in self._directory.glob(f"*/{_NAME}"):
            shutil.rmtree(one.parent, ignore_errors=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    @property
    def _draft(self) -> Path:
        return self._directory / "draft"

    def _drafted(self) -> sqlite3.Connection:
        if not self._draft.is_dir():
            raise WrongState("no new copy of the state was begun")
        return opened(self._draft / _NAME)

    def _database(self) -> sqlite3.Connection | None:
        path = self.path
        if self._open is None and path and path.exists():
            self._open = opened(path)
        return self._open


class _OtherError(Exception):
    """A commit does not lead from here to where it led on the master."""


def _follow(database: sqlite3.Connection, commit: Logged) -> None:
    before, _ = head_of(database)
    if not audit_copy.only_grows(database, commit.writes):
        raise _OtherError
    changed = (write(database, key, value) for key, value in commit.writes)
    total = checksums.combined((before.total, *changed))
    if not Head(before.version + 1, before.term, total).holds(commit.head):
        raise _OtherError
    put_head(database, commit.head)
