# SPDX-License-Identifier: BSD-2-Clause
"""Stores of earlier versions: a copy is kept, then each step makes the next format.

Whoever changes what a record is called or means raises :data:`FORMAT`, and adds the
step that leads there. All steps are one transaction: a store is of its old format, or
of the newest. An earlier Moorage refuses a store of a later format.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from msgspec import json

from moorage import durable
from moorage.model.commits import Head, Key, Write

from . import checksums
from .base import Damaged
from .records import (
    SCHEMA,
    at_once,
    check_here,
    format_of,
    head_of,
    put_head,
    records_of,
    write,
)

_POOL = 10
"""How many nodes format 2 lets keep a copy of the state, where nobody said."""


def checksummed(database: sqlite3.Connection) -> None:
    """Format 1: each record and the head have a checksum."""
    for table, column in (("records", "sum"), ("head", "total"), ("head", "sum")):
        known = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if column not in known:
            add = f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0"
            database.execute(add)
    head, _ = head_of(database)
    records, _ = records_of(database)
    sums = {key: checksums.of_record(key, value) for key, value in records.items()}
    put = "UPDATE records SET sum = ? WHERE kind = ? AND name = ?"
    database.executemany(put, ((one, *key) for key, one in sums.items()))
    put_head(database, head._replace(total=checksums.combined(sums.values())))


def few_candidates(database: sqlite3.Connection) -> None:
    """Format 2: a candidate keeps a copy of the state, so that not every node is one.

    Before, all nodes were marked, and the mark had no effect.
    """
    records, _ = records_of(database)
    _rewrite(database, _demotions(records))


def _demotions(records: Mapping[Key, bytes]) -> Iterator[Write]:
    nodes = {key: json.decode(one) for key, one in records.items() if key[0] == "node"}
    masters = {
        json.decode(one).get("master_node")
        for (kind, _), one in records.items()
        if kind == "cluster"
    }
    marked = [key for key, node in nodes.items() if node.get("master_candidate", True)]
    marked.sort(key=lambda key: (key[1] not in masters, nodes[key]["name"]))
    yield from _sized(records)
    for key in marked[_POOL:]:
        serial_no = nodes[key].get("serial_no", 1) + 1
        changed = {"master_candidate": False, "serial_no": serial_no}
        yield key, json.encode(nodes[key] | changed)


def _sized(records: Mapping[Key, bytes]) -> Iterator[Write]:
    """Yield the cluster with as many candidates as it had: new ones have fewer."""
    for key, value in records.items():
        known = json.decode(value) if key[0] == "cluster" else {}
        if key[0] == "cluster" and "candidate_pool_size" not in known:
            serial_no = known.get("serial_no", 1) + 1
            changed = {"candidate_pool_size": _POOL, "serial_no": serial_no}
            yield key, json.encode(known | changed)


def tasks_apart(_database: sqlite3.Connection) -> None:
    """Format 3: the tasks of a job's operations lie in records of their own.

    Before, they lay in the job's, where they are found as ever: there is nothing to
    change. Who does not know of the records would take such a job for one without any.
    """


def _rewrite(database: sqlite3.Connection, writes: Iterator[Write]) -> None:
    head, _ = head_of(database)
    changed = [write(database, key, value) for key, value in writes]
    if not changed:
        return
    total = checksums.combined((head.total, *changed))
    put_head(database, Head(head.version + 1, head.term, total))


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    checksummed,
    few_candidates,
    tasks_apart,
)
"""The step at a place leads from the format of that number to the next one."""
FORMAT = len(STEPS)
"""What SQLite keeps as the file's ``user_version``; 0 is a store without checksums."""


def furnish(database: sqlite3.Connection, path: Path) -> None:
    """Make the tables of an empty file; bring an earlier store to this format.

    Raises
    ------
    Damaged
        If it is of a later format, or of none.
    """
    found = format_of(database)
    refuse_others(path, found)
    check_here(database, path)
    if found == FORMAT:
        return
    if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
        database.executescript(SCHEMA)
    else:
        _keep(database, kept(path, found))
    with at_once(database):
        for step in STEPS[found:]:
            step(database)
        database.execute(f"PRAGMA user_version = {FORMAT}")


def refuse_others(path: Path, found: int) -> None:
    """Raise `Damaged` if no step leads from a format to this one."""
    if found > FORMAT:
        raise Damaged(
            f"{path} is of a later Moorage: its format {found} is unknown to this one, "
            f"which reads up to {FORMAT}",
            hint="install the later one again; or, without what was done since: rm -f "
            f"{path}-wal {path}-shm; mv {kept(path, FORMAT)} {path}",
        )
    if found < 0:
        raise Damaged(f"{path} is damaged: its format {found} is no Moorage's")


def kept(path: Path, number: int) -> Path:
    """Return where the copy lies of a store that was of an earlier format."""
    return path.with_name(f"{path.name}.format-{number}")


def _keep(database: sqlite3.Connection, target: Path) -> None:
    """Copy a store as it is, to a file of its owner's alone; it is on the disk then."""
    draft = target.with_name(f"{target.name}.draft")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    with closing(sqlite3.connect(draft)) as other:
        database.backup(other)
    draft.replace(target)  # SQLite has put its data on the disk
    durable.sync(target.parent)
