# SPDX-License-Identifier: BSD-2-Clause
"""A candidate's copy of the audit log: it grows, and is not rewritten in silence.

A master may send any state, for it leads. But a copy that would lose entries which this
one has, or have others in their place, leaves what was here in a file of the node's,
where no order of a master reaches it, and the node's log says so.
"""

import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from moorage import durable
from moorage.model.audit import Chain, checksum
from moorage.model.commits import Write
from moorage.store import audit

_LOG = logging.getLogger(__name__)
_FILES = 5
"""Files that are kept, the first ones: later ones may be made to push them out."""
_WHERE = f"FROM records WHERE kind = '{audit.KIND}'"


def only_grows(database: sqlite3.Connection, writes: Sequence[Write]) -> bool:
    """Whether some writes go on behind the newest entry, and drop none but the oldest.

    The oldest go when there are more than are kept, and no others.

    Parameters
    ----------
    database
        As it is before them.
    """
    ours = [(name, value) for (kind, name), value in writes if kind == audit.KIND]
    if not ours:
        return True
    added = sorted((name, value) for name, value in ours if value is not None)
    gone = sorted(name for name, value in ours if value is None)
    newest = f"SELECT name, value {_WHERE} ORDER BY name DESC LIMIT 1"
    last = database.execute(newest).fetchall()
    if last and added and added[0][0] <= last[0][0]:
        return False
    if any(Chain().read(value for _, value in [*last, *added])):
        return False
    if not gone:
        return True
    (number,) = database.execute(f"SELECT COUNT(*) {_WHERE}").fetchone()
    if number + len(added) - len(gone) < audit.KEPT:
        return False
    oldest = f"SELECT name {_WHERE} ORDER BY name LIMIT ?"
    return gone == [name for (name,) in database.execute(oldest, (len(gone),))]


def lost(old: sqlite3.Connection, new: sqlite3.Connection) -> list[bytes]:
    """Return the entries of a copy if another one does not go on from them."""
    before, after = _entries(old), _entries(new)
    if not before:
        return []
    newest = max(before)
    full = len(after) >= audit.KEPT  # only then may the oldest have gone
    goes_on = newest in after or (full and min(after) > newest)
    same = all(after.get(name, one) == one for name, one in before.items())
    if goes_on and same and (full or before.keys() <= after.keys()):
        return []
    return [before[name] for name in sorted(before)]


def _entries(database: sqlite3.Connection) -> dict[str, bytes]:
    return dict(database.execute(f"SELECT name, value {_WHERE}").fetchall())


def keep(directory: Path, lines: Sequence[bytes]) -> None:
    """Keep entries that a new copy does not have, in a file that can be checked."""
    told = "the new copy of the state does not have the audit log that was here, up to"
    head = checksum(lines[-1])
    durable.make(directory)
    path = directory / f"lost-{head[:16]}.jsonl"
    if not path.exists() and len(list(directory.glob("lost-*"))) >= _FILES:
        _LOG.error("%s the entry with the checksum %s", told, head)
        return
    durable.write(path, b"".join(one + b"\n" for one in lines))
    _LOG.error("%s the entry with the checksum %s: it is in %s", told, head, path)
