# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that bring one disk's data to another: at rest, or while a guest writes."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from msgspec.structs import replace

from moorage.model import Disk
from moorage.storage import Outcome

from .verb import OnDisk, OnSlot

R_co = TypeVar("R_co", covariant=True)

LONGEST = 30 * 86400.0
"""Seconds that the data of a disk may be on their way."""


class CopyDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.copy"):
    """Copy all data of a disk to another one; both are attached here, and at rest.

    Attributes
    ----------
    to
        The disk that is written: at least as large.
    rate
        MiB a second at most; 0 for no limit.
    """

    limit = LONGEST

    to: Disk
    rate: int = 0

    def fencing(self) -> tuple[Disk, ...]:
        """Return both disks."""
        return self.disk, self.to

    def renewed(self, renew: Callable[[Disk], Disk]) -> Self:
        """Return the verb with other versions of its disks."""
        return replace(self, disk=renew(self.disk), to=renew(self.to))


class Mirroring(OnSlot[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on the mirror of a running guest's disk.

    Attributes
    ----------
    disk
        What the guest has; `to` is what it is to have instead, attached here.
    """

    to: Disk

    def fencing(self) -> tuple[Disk, ...]:
        """Return both disks."""
        return self.disk, self.to

    def renewed(self, renew: Callable[[Disk], Disk]) -> Self:
        """Return the verb with other versions of its disks."""
        return replace(self, disk=renew(self.disk), to=renew(self.to))


class MirrorDisk(Mirroring[None], frozen=True, kw_only=True, tag="mirror.start"):
    """Copy a running guest's disk, and from then on write to both.

    Attributes
    ----------
    rate
        MiB a second at most; 0 for no limit. It can be another one while it runs.
    """

    limit = LONGEST

    rate: int = 0


class DropMirror(OnDisk[None], frozen=True, kw_only=True, tag="mirror.drop"):
    """Give a mirror up: the guest goes on with the disk that it had.

    Attributes
    ----------
    disk
        The one that was written besides; it is nobody's afterwards.
    guest
        Uuid of the guest.
    of
        Uuid of the disk that the guest keeps.
    """

    guest: str
    of: str

    def touched(self) -> frozenset[str]:
        """Return the two disks and the guest."""
        return OnDisk.touched(self) | {self.guest, self.of}


class SwitchMirror(Mirroring[None], frozen=True, tag="mirror.switch"):
    """Let a guest stand still, and give it the new disk, which is equal then."""


class SplitMirror(Mirroring[None], frozen=True, tag="mirror.split"):
    """End a mirror: `to` is a copy of this moment, and the guest keeps what it has."""


class SettleMirror(Mirroring[None], frozen=True, tag="mirror.settle"):
    """Let a guest that was switched go on, and close what it had before.

    From here on, the new volume is the one of `disk` on this node.
    """
