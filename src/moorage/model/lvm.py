# SPDX-License-Identifier: BSD-2-Clause
"""What LVM has on a node; sizes in MiB."""

from msgspec import Struct

from moorage.units import Mib


class PhysicalVolume(Struct, frozen=True, kw_only=True):
    """A device that LVM keeps volumes on.

    Attributes
    ----------
    group
        Its volume group; empty for none.
    allocatable
        Whether new volumes may lie there.
    """

    name: str
    group: str
    size: Mib
    free: Mib
    allocatable: bool


class LogicalVolume(Struct, frozen=True, kw_only=True):
    """A logical volume, and the devices that it lies on."""

    group: str
    name: str
    size: Mib
    devices: tuple[str, ...] = ()


class Lvm(Struct, frozen=True, kw_only=True):
    """All of a node; nothing where it has no LVM."""

    physical: tuple[PhysicalVolume, ...] = ()
    logical: tuple[LogicalVolume, ...] = ()
