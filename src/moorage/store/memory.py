# SPDX-License-Identifier: BSD-2-Clause
"""The store of tests: a dictionary that outlives the process that a test kills."""

from collections.abc import Mapping, Sequence

from moorage.errors import Conflict
from moorage.model.commits import Head, Key, Write

from .base import Stored
from .checksums import combined, of_record


class MemoryStore:
    """A store in memory. A new leader takes over at once, as after a crash."""

    def __init__(self) -> None:
        self.version = 0
        self.term = 0
        self.records: dict[Key, bytes] = {}
        self._sums: dict[Key, int] = {}

    @property
    def head(self) -> Head:
        """What the last commit made, or the taking of the lead."""
        return Head(self.version, self.term, combined(self._sums.values()))

    async def whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        """Return all records, and the head that they belong to."""
        return self.head, dict(self.records)

    async def lead(self) -> int:
        """Become the only writer; return the term."""
        self.term += 1
        return self.term

    async def load(self) -> Stored:
        """Return all records."""
        return Stored(self.version, dict(self.records))

    async def read(self, kind: str, prefix: str) -> Mapping[str, bytes]:
        """Return the records of a kind whose names begin with `prefix`, by name."""
        return {
            name: value
            for (one, name), value in self.records.items()
            if one == kind and name.startswith(prefix)
        }

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Apply `writes` at version `expected`; return the new version."""
        if expected != self.version:
            raise Conflict(f"the store is at version {self.version}, not {expected}")
        for key, value in writes:
            if value is None:
                self.records.pop(key, None)
                self._sums.pop(key, None)
            else:
                self.records[key] = value
                self._sums[key] = of_record(key, value)
        self.version += 1
        return self.version

    def look(self) -> None:
        """Do nothing: the lead lasts as long as the process."""

    async def close(self) -> None:
        """Keep everything: the test may open it again."""
