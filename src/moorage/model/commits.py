# SPDX-License-Identifier: BSD-2-Clause
"""Commits of a store as data: what the master's store and its copies agree on."""

from typing import NamedTuple

from msgspec import Struct

Key = tuple[str, str]
"""Kind of a record, and its name in that kind."""
Write = tuple[Key, bytes | None]
"""A record to put, or (None) to drop."""


class Head(NamedTuple):
    """Where a store stands.

    Attributes
    ----------
    version
        How many commits there were.
    term
        Of the master that made the last one.
    total
        The checksums of all records, combined.
    """

    version: int
    term: int
    total: int

    def holds(self, other: "Head") -> bool:
        """Whether two stores hold the same; each new master counts a new term."""
        return (self.version, self.total) == (other.version, other.total)


class Logged(Struct, frozen=True):
    """One commit.

    Attributes
    ----------
    head
        Where the store stands after it.
    """

    head: Head
    writes: tuple[Write, ...]
