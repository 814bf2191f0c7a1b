# SPDX-License-Identifier: BSD-2-Clause
"""What a store is: records under keys, changed all at once or not at all.

An engine keeps bytes and knows nothing of what they mean; :class:`moorage.store.Truth`
puts the configuration on top.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Key = tuple[str, str]
"""Kind of the record, and its name in that kind."""
Write = tuple[Key, bytes | None]
"""A record to put, or (None) to drop."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything a store holds, at one version."""

    version: int
    records: Mapping[Key, bytes]


class Store(Protocol):
    """The engine: three verbs and a door."""

    async def lead(self) -> int:
        """Become the only writer; return the term, higher than every earlier one.

        Raises
        ------
        Refused
            If another process leads.
        """

    async def load(self) -> Stored:
        """Return all records."""

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Apply `writes` at version `expected`; return the new version.

        When this returns, the writes survive a power loss.

        Raises
        ------
        Conflict
            If the version is another one, or the lead was lost; nothing is written.
        """

    async def close(self) -> None:
        """Let go of the store and of the lead."""
