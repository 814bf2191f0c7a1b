# SPDX-License-Identifier: BSD-2-Clause
"""Who asks for something, and by which door."""

from enum import IntEnum

from msgspec import Struct

from moorage.errors import BadInput

_MAY = {
    "known": "look at what has no secrets: Ganeti's user without options",
    "read": "look at everything",
    "operate": "start, stop and move guests, use consoles, follow and cancel jobs",
    "write": "everything but what the next roles are for",
    "adopt": "take over what a provider finds by a disk's name (reuse_data)",
    "root": "what lets a node's root act for somebody",
}


class Role(IntEnum):
    """What somebody may do: each role may do all that those before it may."""

    KNOWN = 0
    READ = 1
    OPERATE = 2
    WRITE = 3
    ADOPT = 4
    ROOT = 5

    @property
    def may(self) -> str:
        """What it may do besides."""
        return _MAY[self.word]

    @property
    def word(self) -> str:
        """How the role is written."""
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


class Caller(Struct, frozen=True, omit_defaults=True):
    """Who asks.

    Attributes
    ----------
    name
        Of the user; empty where nobody is known.
    door
        ``luxi``, ``rapi``, or ``master`` for its own chores.
    detail
        The process or the address that it came from.
    request
        What its door calls the request; empty for nothing.
    """

    name: str
    door: str
    role: Role = Role.ROOT
    detail: str = ""
    request: str = ""

    def __str__(self) -> str:
        return f"{self.name} by {self.door}" if self.name else self.door

    def may(self, role: Role) -> bool:
        """Whether the caller has a role, or a higher one."""
        return self.role >= role


NOBODY = Caller("", "")
"""Of jobs that were queued when nobody was asked who it was."""
MASTER = Caller("", "master")
"""The master itself, for its own chores."""
