# SPDX-License-Identifier: BSD-2-Clause
"""The feed: the newest entries of what happens, kept in the store with their commits.

Whoever was away says the number of the last entry that it heard, and goes on behind it.
Where that one is not kept any more, or is of a history that a later master does not
have, it hears that it has to read everything anew.
"""

import asyncio
from collections.abc import Mapping
from itertools import takewhile

from msgspec import json

from moorage.model.commits import Write
from moorage.model.events import Entry

KIND = "event"
"""The kind of the records; the name is the entry's number."""
KEPT = 5000
"""Entries that are kept."""


class Feed:
    """The entries, oldest first.

    Parameters
    ----------
    last
        Number of the newest commit: whoever asks first goes on from there.

    Attributes
    ----------
    last
        Number of the newest entry, or where the feed began.
    """

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._began: int | None = last
        self._told: dict[int, bytes] = {}
        self._hidden: dict[int, bytes] = {}
        self._grown = asyncio.Event()

    @classmethod
    def load(cls, records: Mapping[str, bytes], last: int) -> "Feed":
        """Return what there is in a store.

        Raises
        ------
        ValueError
            If a record is no entry.
        """
        feed = cls(last)
        for name in sorted(records):
            feed.note(decoded(records[name]).number, records[name])
        feed.show(last)
        return feed

    def writes(self, entry: Entry) -> list[Write]:
        """Return the records that tell an entry, and drop the oldest one."""
        told: list[Write] = [((KIND, _name(entry.number)), json.encode(entry))]
        if len(self._told) + len(self._hidden) >= KEPT:
            oldest = next(iter(self._told or self._hidden))
            told.append(((KIND, _name(oldest)), None))
        return told

    def note(self, number: int, entry: bytes) -> None:
        """Take note of an entry that was written; nobody is told of it yet."""
        if len(self._told) + len(self._hidden) >= KEPT:
            kept = self._told or self._hidden
            del kept[next(iter(kept))]
            self._began = None
        self._hidden[number] = entry

    def show(self, number: int) -> None:
        """Tell the entries up to a commit: no crash can take them back."""
        shown = [at for at in self._hidden if at <= number]
        for at in shown:
            self._told[at] = self._hidden.pop(at)
            self.last = at
        if shown:
            self._grown.set()
            self._grown = asyncio.Event()

    def after(self, number: int, most: int = KEPT) -> list[bytes] | None:
        """Return the entries behind one, as JSON; None if there is no such one.

        Parameters
        ----------
        most
            How many; the others are behind the last of these.
        """
        if number == self.last:
            return []
        if number not in self._told and number != self._began:
            return None
        newer = list(takewhile(lambda at: at > number, reversed(self._told)))
        return [self._told[at] for at in newer[: -most - 1 : -1]]

    async def grown(self, number: int, patience: float) -> bool:
        """Wait for an entry behind one; return False after so many seconds."""
        if number != self.last:
            return True
        try:
            await asyncio.wait_for(self._grown.wait(), patience)
        except TimeoutError:
            return False
        return True


def _name(number: int) -> str:
    return f"{number:026d}"  # as many as the highest term takes: names sort


def decoded(value: bytes) -> Entry:
    """Return an entry; raise `ValueError` if it is none."""
    return json.decode(value, type=Entry)
