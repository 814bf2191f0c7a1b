# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what: each role may do all that those before it may."""

from dataclasses import dataclass
from enum import IntEnum

from moorage.errors import BadInput


class Role(IntEnum):
    """What a user may do."""

    KNOWN = 0
    """Look at what has no secrets: Ganeti's user without options."""
    READ = 1
    """Look at everything, consoles and queries too."""
    OPERATE = 2
    """Start, stop and move guests, and follow or cancel jobs."""
    WRITE = 3
    """Everything."""

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
