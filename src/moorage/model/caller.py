# SPDX-License-Identifier: BSD-2-Clause
"""Who asks for something, and by which door."""

from msgspec import Struct

READ, OPERATE, WRITE, ROOT = "read", "operate", "write", "root"
ROLES = READ, OPERATE, WRITE, ROOT
"""What somebody may do: look; start, stop and move what there is; make, change and
remove anything but what the next is for; whatever lets a node's root act for them."""


class Caller(Struct, frozen=True, omit_defaults=True):
    """Who asks.

    Attributes
    ----------
    name
        Of the user.
    door
        ``luxi``, ``rapi``, or ``master`` for its own chores.
    role
        One of `ROLES`.
    """

    name: str
    door: str
    role: str = ROOT

    def __str__(self) -> str:
        return f"{self.name} by {self.door}" if self.name else self.door

    def may(self, role: str) -> bool:
        """Whether the caller has a role, or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)


NOBODY = Caller("", "")
"""Of jobs that were queued when nobody was asked who it was."""
MASTER = Caller("", "master")
"""The master itself, for its own chores."""
