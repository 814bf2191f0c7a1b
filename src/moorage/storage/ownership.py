# SPDX-License-Identifier: BSD-2-Clause
"""Whose a volume is: what may be somebody else's is not destroyed in passing."""

from moorage.model import Disk

from .templates import template_named
from .validation import looks_ours


def could_be_others(disk: Disk) -> bool:
    """Whether the volume of a disk may be one that somebody else made.

    A provider may know it by the disk's name, which another cluster may use, too. One
    without a name, or with a name of its own, can be nobody else's.
    """
    provider = template_named(disk.dev_type).capabilities.provider
    return provider and bool(disk.name) and disk.cname is None


def could_be_taken(disk: Disk) -> bool:
    """Whether a node may have somebody else's volume where a disk's is to be made.

    Providers refuse what they did not make; elsewhere, names of our kind are born once.
    """
    provider = template_named(disk.dev_type).capabilities.provider
    return not provider and not looks_ours(disk.volume, disk.dev_type)


def ways_out(disk: Disk) -> str:
    """Return the commands for a disk of which nobody knows whose its volume is."""
    return (
        f"if the volume is not this disk's: gnt-disk forget --reason WHY {disk.uuid}; "
        f"if it is: gnt-disk modify --lift-quarantine {disk.uuid}, or gnt-disk remove "
        f"--volume-is-ours {disk.uuid}"
    )
