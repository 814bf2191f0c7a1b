# SPDX-License-Identifier: BSD-2-Clause
"""The audit log in the store: the newest entries, each in the commit that it tells of.

In memory is no more than where it stands; the lines themselves stay in the store.
"""

from collections.abc import Iterable, Mapping, Sequence

from moorage.model.audit import Deed, checksum, decoded, line
from moorage.model.commits import Key, Write

KIND = "audit"
"""The kind of the records; the name is the entry's number, the value its line."""
KEPT = 10_000
"""Entries that are kept."""
_DIGITS = 15


class AuditLog:
    """Where the log stands.

    Attributes
    ----------
    first
        Number of the oldest entry that is kept.
    last
        Number of the newest one; 0 for none.
    head
        Its checksum.
    shown
        Number of the newest one that no crash can take back.
    """

    def __init__(self) -> None:
        self.first = 1
        self.last = self.shown = 0
        self.head = ""

    @classmethod
    def load(cls, records: Mapping[str, bytes]) -> "AuditLog":
        """Return what there is in a store.

        Raises
        ------
        ValueError
            If the newest record is no entry.
        """
        found = cls()
        if records:
            newest = max(records)
            decoded(records[newest])
            found.first, found.last = int(min(records)), int(newest)
            found.head, found.shown = checksum(records[newest]), found.last
        return found

    def lines(self, deeds: Iterable[Deed], term: int) -> list[bytes]:
        """Return the lines that tell what was done, behind the newest one."""
        made: list[bytes] = []
        head = self.head
        for number, one in enumerate(deeds, self.last + 1):
            made.append(line(one, number, term, head))
            head = checksum(made[-1])
        return made

    def writes(self, lines: Sequence[bytes]) -> list[Write]:
        """Return the records that have these lines, and drop the oldest ones."""
        last = self.last + len(lines)
        gone = range(self.first, last - KEPT + 1) if lines else range(0)
        put = enumerate(lines, self.last + 1)
        dropped: list[Write] = [(key(number), None) for number in gone]
        return [*((key(number), text) for number, text in put), *dropped]

    def note(self, lines: Sequence[bytes]) -> None:
        """Take note of lines that were written; nobody is told of them yet."""
        if lines:
            self.last += len(lines)
            self.first = max(self.first, self.last - KEPT + 1)
            self.head = checksum(lines[-1])

    def show(self, number: int) -> None:
        """Tell the entries up to a number: no crash can take them back."""
        self.shown = max(self.shown, number)


def key(number: int) -> Key:
    """Return the key of an entry's record: names sort as numbers do."""
    return KIND, f"{number:0{_DIGITS}d}"


def between(records: Mapping[str, bytes], after: int, last: int) -> list[bytes]:
    """Return the lines behind an entry, up to another one, in order."""
    names = sorted(name for name in records if after < int(name) <= last)
    return [records[name] for name in names]
