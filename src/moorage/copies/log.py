# SPDX-License-Identifier: BSD-2-Clause
"""The newest commits of a store, for those who follow it."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence

from moorage.model.commits import Head, Key, Logged, Write
from moorage.store import Store, Stored

_MOST, _LONGEST = 16 * 1024 * 1024, 5000
"""Bytes and commits that are kept; who lacks more gets a whole copy."""


class CommitLog:
    """A store that notes its commits, in their order.

    Parameters
    ----------
    engine
        What keeps the records.

    Attributes
    ----------
    grown
        Set, and replaced, when a commit was noted.
    head
        Where the store stood after the last commit that was noted, or else when the
        lead was taken. The engine may be a commit ahead, which its thread has written.
    """

    def __init__(self, engine: Store) -> None:
        self.grown = asyncio.Event()
        self.head = Head(0, 0, 0)
        self._engine = engine
        self._before = self.head
        self._recent: deque[tuple[Logged, int]] = deque()
        self._size = 0

    async def lead(self) -> int:
        """Become the only writer; return the term."""
        term = await self._engine.lead()
        self.head = self._before = self._engine.head
        self._recent.clear()
        self._size = 0
        return term

    async def load(self) -> Stored:
        """Return all records."""
        return await self._engine.load()

    async def read(self, kind: str, prefix: str) -> Mapping[str, bytes]:
        """Return the records of a kind whose names begin with `prefix`, by name."""
        return await self._engine.read(kind, prefix)

    async def whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        """Return all records, and the head that they belong to.

        What comes after that head is noted here, or will be.
        """
        head, records = await self._engine.whole()
        while self.head.version < head.version:
            await self.grown.wait()
        return head, records

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Apply `writes` at version `expected`, and note them."""
        version = await self._engine.commit(writes, expected=expected)
        self._note(Logged(self._engine.head, tuple(writes)))
        return version

    def look(self) -> None:
        """Look whether the lead is over, as :meth:`moorage.store.Store.look` does."""
        self._engine.look()

    async def close(self) -> None:
        """Let go of the store and of the lead."""
        await self._engine.close()

    def _note(self, commit: Logged) -> None:
        size = sum(len(value or b"") + 100 for _, value in commit.writes)
        self.head = commit.head
        self._recent.append((commit, size))
        self._size += size
        while self._size > _MOST or len(self._recent) > _LONGEST:
            oldest, size = self._recent.popleft()
            self._before = oldest.head
            self._size -= size
        self.grown.set()
        self.grown = asyncio.Event()

    def after(self, head: Head) -> list[Logged] | None:
        """Return the commits that a store lacks which stands at `head`.

        None if nobody knows: they are too many, or it never was a store of ours.
        """
        if head.version >= self.head.version:
            return [] if head.holds(self.head) else None
        missing = self.head.version - head.version
        if missing > len(self._recent):
            return None
        known = len(self._recent) > missing
        there = self._recent[-missing - 1][0].head if known else self._before
        if not there.holds(head):
            return None
        return [commit for commit, _ in list(self._recent)[-missing:]]
