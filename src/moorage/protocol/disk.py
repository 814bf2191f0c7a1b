# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on one disk; most answer whether they changed anything."""

from msgspec.structs import replace

from moorage.model import Device, Disk
from moorage.storage import Outcome, Where
from moorage.storage.templates import template_named
from moorage.units import Mib

from .verb import OnDisk

EXCLUSIVE, SHARED, ALONE, SEIZED = "exclusive", "shared", "alone", "seized"
"""How a node opens a disk: as the only one, or beside another one; as the only one
although another copy may not follow, or its own may lack what was written."""
FOUND = "found"
"""A node's copy of a mirrored disk is taken as it was set up by others, and nothing of
it is changed."""


class CreateDisk(OnDisk[Outcome], frozen=True, tag="disk.create"):
    """Make the volume."""


class UnmakeDisk(OnDisk[Outcome], frozen=True, tag="disk.unmake"):
    """Take back a `create` or `snapshot`, whatever came of it here."""


class RemoveDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.remove"):
    """Destroy the volume, unless a guest here has it.

    Attributes
    ----------
    sought
        Whether the volume must be found here first. A provider's ``remove`` is content
        where there is none, and it may be on another node.
    """

    sought: bool = False


class ForgetDisk(OnDisk[Outcome], frozen=True, tag="disk.forget"):
    """Drop what the node knows of the disk; its storage is asked for nothing."""


class AttachDisk(OnDisk[Where], frozen=True, kw_only=True, tag="disk.attach"):
    """Make the volume usable here, and open it if asked to.

    Attributes
    ----------
    opened
        :data:`EXCLUSIVE`, :data:`SHARED`, :data:`ALONE`, :data:`SEIZED`, or empty for
        not at all; :data:`FOUND` for what must be so already.
    ignore_size
        Take the device, whatever its size is.
    """

    opened: str = ""
    ignore_size: bool = False


class DetachDisk(OnDisk[Outcome], frozen=True, tag="disk.detach"):
    """Take back the attach, unless a guest here has the disk."""


class OpenDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.open"):
    """Tell the storage that this node may write.

    Attributes
    ----------
    exclusive
        Whether this node is the only one that may.
    alone
        Whether it may although another copy does not follow.
    """

    exclusive: bool = True
    alone: bool = False


class CloseDisk(OnDisk[Outcome], frozen=True, tag="disk.close"):
    """Tell the storage that this node stops writing."""


class GrowDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.grow"):
    """Enlarge the volume.

    Attributes
    ----------
    to
        The new size in MiB.
    measured
        Whether the device is looked at afterwards: storage may say that it grew.
    """

    to: Mib
    measured: bool = False


class SizeDisk(OnDisk[Device], frozen=True, tag="disk.size"):
    """Attach the volume, tell what it is, and detach it, if it was not attached."""


class SnapshotDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.snapshot"):
    """Make a copy-in-time.

    Attributes
    ----------
    name
        Of the copy's volume.
    to
        Size of the copy in MiB.
    """

    name: str
    to: Mib

    def copy(self) -> Disk:
        """Return the disk that the copy can be driven as.

        The storage knows the copy by the name of its volume alone.
        """
        kind = template_named(self.disk.dev_type)
        volume = kind.snapshot_id(self.disk, self.name)
        return replace(
            self.disk,
            logical_id=volume,
            size=self.to,
            name=None,
            cname=self.name,
            adopted=False,
        )

    def volumes(self) -> tuple[Disk, ...]:
        """Return the disk and its copy."""
        return self.disk, self.copy()


class VerifyDisk(OnDisk[Outcome], frozen=True, tag="disk.verify"):
    """Look at the disk's parameters, before anything is made with them."""


class TuneDisk(OnDisk[Outcome], frozen=True, tag="disk.tune"):
    """Let a disk that is in use go by its parameters as they are now.

    Those of a mirror, and what its guest may ask of it.
    """


class NoteDisk(OnDisk[Outcome], frozen=True, kw_only=True, tag="disk.setinfo"):
    """Keep a note beside the volume.

    Attributes
    ----------
    text
        The note.
    """

    text: str
