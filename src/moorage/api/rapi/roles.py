# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what: each role may do all that those before it may."""

from dataclasses import dataclass
from enum import IntEnum

from moorage.errors import BadInput

_MAY = {
    "known": "look at what has no secrets: Ganeti's user without options",
    "read": "look at everything, consoles and queries too",
    "operate": "start, stop and move guests, and follow or cancel jobs",
    "write": "everything",
}


class Role(IntEnum):
    """What a user may do."""

    KNOWN = 0
    READ = 1
    OPERATE = 2
    WRITE = 3

    @property
    def may(self) -> str:
        """What users of it may do, besides what those of the roles before it may."""
        return _MAY[self.word]

    @property
    def word(self) -> str:
        """How the role is written in a file of users."""
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> "Role":
        """Return the role that a word means.

        Raises
        ------
        BadInput
            If it means none.
        """
        known = {one.word: one for one in cls}
        if word not in known:
            raise BadInput(f"a role is one of {', '.join(known)}, not '{word}'")
        return known[word]


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who has shown a password or a token.

    Attributes
    ----------
    until
        When that ends, in seconds; None for never.
    """

    name: str
    role: Role
    until: float | None = None
