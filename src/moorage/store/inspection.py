# SPDX-License-Identifier: BSD-2-Clause
"""Looking at a store without changing it, a master or none running on it."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage.model.commits import Key

from . import checksums
from .base import Damaged
from .engine import etcd_of
from .etcd import EtcdSettings, EtcdStore
from .migrations import FORMAT
from .records import check_here, format_of, head_of, records_of


@dataclass(slots=True)
class Inspection:
    """What was found.

    Attributes
    ----------
    faults
        What is wrong with the file, in words.
    records
        What could be read; their content was not looked at.
    version, term
        Of the store; 0 if they could not be read.
    """

    faults: list[str] = field(default_factory=list)
    records: Mapping[Key, bytes] = field(default_factory=dict)
    version: int = 0
    term: int = 0


def inspect(path: Path, *, live: bool) -> Inspection:
    """Look at a store: its file's structure, and the checksums of what is in it.

    Parameters
    ----------
    live
        Whether a master works on it now.

    Raises
    ------
    OSError, StoreError
        If it cannot be read.
    """
    settings = etcd_of(path)
    if settings:
        return asyncio.run(_of_etcd(settings))
    found = Inspection()
    with _opened(path, live=live) as database:
        try:
            database.execute("BEGIN")  # one state of it, whatever the master does
            found.faults += _structure(database)
            check_here(database, path)
            _read(database, found)
        except (sqlite3.Error, ValueError) as error:
            found.faults.append(f"it cannot be read: {error}")
    return found


async def _of_etcd(settings: EtcdSettings) -> Inspection:
    store = EtcdStore(settings)
    try:
        head, records = await store.whole()
    except Damaged as error:
        return Inspection([error.message])
    finally:
        await store.close()
    return Inspection([], records, head.version, head.term)


@contextmanager
def _opened(path: Path, *, live: bool) -> Iterator[sqlite3.Connection]:
    """Open the file; a copy of it if nobody else does, lest SQLite tidies it up."""
    with TemporaryDirectory() as scratch:
        if not live:
            for suffix in ("", "-wal"):
                source = path.with_name(f"{path.name}{suffix}")
                if source.exists():
                    shutil.copyfile(source, Path(scratch, source.name))
            path = Path(scratch, path.name)
        uri = f"{path.absolute().as_uri()}?mode=ro" if live else path.as_uri()
        opened = sqlite3.connect(uri, uri=True, isolation_level=None)
        with closing(opened) as database:
            yield database


def _structure(database: sqlite3.Connection) -> Iterator[str]:
    for (line,) in database.execute("PRAGMA integrity_check(10)"):
        if line != "ok":
            yield f"its structure: {' '.join(line.split())}"


def _read(database: sqlite3.Connection, found: Inspection) -> None:
    number = format_of(database)
    if number != FORMAT:
        found.faults.append(f"its format is {number}, and not {FORMAT}: {_why(number)}")
        return
    head, head_sum = head_of(database)
    found.records, known = records_of(database)
    found.version, found.term = head.version, head.term
    found.faults += checksums.faults(head, head_sum, found.records, known)


def _why(number: int) -> str:
    if number > FORMAT:
        return "it is a later Moorage's"
    if number < 0:
        return "it is no Moorage's"
    return "it is an earlier Moorage's, and the next master keeps a copy and changes it"
