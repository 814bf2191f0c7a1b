# SPDX-License-Identifier: BSD-2-Clause
"""What a store is: records under keys, changed all at once or not at all.

An engine keeps bytes and knows nothing of what they mean;
:class:`moorage.store.ConfigStore` puts the configuration on top.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from moorage.errors import Failed
from moorage.model.commits import Head, Key, Write
from moorage.model.misfit import UNREADABLE, why

ADVICE = "moorage master check"
"""What to type when a store is damaged: it says what is wrong."""
_DIGITS = 18
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything a store holds, at one version."""

    version: int
    records: Mapping[Key, bytes]


class StoreError(Failed):
    """The store cannot be opened, read or written.

    Attributes
    ----------
    lasting
        Whether trying again is of no use: what is there is no store.
    """

    lasting = False


class Damaged(StoreError):
    """What is there is no store any more."""

    lasting = True


class Elsewhere(StoreError):
    """The state was moved: what is here is not the cluster's any more.

    It has the fact ``move``, which names the move.
    """

    lasting = True


def believed(what: str, read: Callable[[], _T]) -> _T:
    """Return what `read` makes of a record.

    Raises
    ------
    Damaged
        If it cannot read it; `what` names the record.
    """
    try:
        return read()
    except UNREADABLE as error:
        raise Damaged(f"{what} in the store: {why(error)}", hint=ADVICE) from error


def whole(value: bytes) -> int:
    """Return the number in a record.

    Raises
    ------
    ValueError
        If it is none, of 0 or more.
    """
    if not value.isdigit() or len(value) > _DIGITS:
        raise ValueError(f"{value[:_DIGITS]!r} is no number")
    return int(value)


class StoreLost(BaseException):
    """The store could not be written: this process must not go on.

    Whether the last write took effect, only the store knows. Who goes on all the same
    works on a state that is not true. No `Exception`: nobody who deals with the errors
    of a task may take this for one of them.
    """


class Store(Protocol):
    """The engine: it tells where it stands, and what it holds, and commits."""

    @property
    def head(self) -> Head:
        """What the last commit made, or else the taking of the lead."""

    async def lead(self) -> int:
        """Become the only writer; return the term, higher than every earlier one.

        Raises
        ------
        Refused
            If another process leads.
        """

    async def load(self) -> Stored:
        """Return all records."""

    async def whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        """Return all records, and the head that they belong to."""

    async def read(self, kind: str, prefix: str) -> Mapping[str, bytes]:
        """Return the records of a kind whose names begin with `prefix`, by name."""

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Apply `writes` at version `expected`; return the new version.

        When this returns, the writes survive a power loss.

        Raises
        ------
        Conflict
            If the version is another one, or the lead was lost; nothing is written.
        StoreError
            If it cannot be written; whether it was, nobody knows.
        """

    def look(self) -> None:
        """Look whether the lead is over: before each word that only who leads may say.

        Raises
        ------
        StoreLost
            If it is, and who is told of that does not end the process.
        """

    async def close(self) -> None:
        """Let go of the store and of the lead, which may be taken again."""
