# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that bring one disk's data to another: at rest, or while a guest writes."""

from typing import Generic, TypeVar

from moorage.model import Disk
from moorage.storage import Outcome

from .verb import A_MONTH, OnDisk, OnGuest, OnSlot

R_co = TypeVar("R_co", covariant=True)


class CopyDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.copy"):
    """Copy all data of a disk to another one; both are attached here, and at rest.

    Attributes
    ----------
    to
        The disk that is written: at least as large.
    rate
        MiB a second at most; 0 for no limit.
    """

    limit = A_MONTH
    fenced = ("disk", "to")

    to: Disk
    rate: int = 0


class Mirroring(OnSlot[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on the mirror of a running guest's disk.

    Attributes
    ----------
    disk
        What the guest has; `to` is what it is to have instead, attached here.
    """

    fenced = ("disk", "to")

    to: Disk


class MirrorDisk(Mirroring[None], frozen=True, kw_only=True, tag="mirror.start"):
    """Begin to copy a running guest's disk, and to write to both.

    Attributes
    ----------
    rate
        MiB a second at most; 0 for no limit.
    """

    rate: int = 0


class AwaitMirror(OnGuest[None], frozen=True, kw_only=True, tag="mirror.await"):
    """Wait until the two volumes of a mirror are equal.

    It only looks, and nobody waits for it: a mirror can be given up at any time.

    Attributes
    ----------
    of
        Uuid of the disk that the guest has.
    """

    limit = A_MONTH

    of: str

    def touched(self) -> frozenset[str]:
        """Return nothing."""
        return frozenset()


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
