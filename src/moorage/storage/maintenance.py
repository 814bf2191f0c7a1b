# SPDX-License-Identifier: BSD-2-Clause
"""Looking after a node's LVM itself, whatever disks are in it."""

from moorage.errors import Failed
from moorage.model.lvm import LogicalVolume, Lvm, PhysicalVolume
from moorage.units import MIB, Mib, mib_for

from . import lvm
from .command import Command, Steps


def survey() -> Steps[Lvm]:
    """Return what there is; nothing where LVM is not installed."""
    try:
        devices = yield from lvm.report(
            "pvs", "", "pv_name,vg_name,pv_size,pv_free,pv_allocatable"
        )
        groups = yield from lvm.report("vgs", "", "vg_name")
    except Failed:
        return Lvm()
    found: list[LogicalVolume] = []
    for group in groups:
        rows = yield from lvm.report(
            "lvs", "", "lv_name,lv_size,devices", group["vg_name"], whole=True
        )
        found += [_logical(group["vg_name"], row) for row in rows]
    return Lvm(physical=tuple(map(_physical, devices)), logical=tuple(found))


def _physical(row: lvm.Row) -> PhysicalVolume:
    return PhysicalVolume(
        name=row["pv_name"],
        group=row["vg_name"],
        size=Mib(int(row["pv_size"]) // MIB),
        free=Mib(int(row["pv_free"]) // MIB),
        allocatable=row["pv_allocatable"] == "allocatable",
    )


def _logical(group: str, row: lvm.Row) -> LogicalVolume:
    return LogicalVolume(
        group=group,
        name=row["lv_name"],
        size=mib_for(lvm.size_of(row)),
        devices=tuple(lvm.devices_of(row)),
    )


def allocatable(device: str, *, wanted: bool) -> Steps[None]:
    """Say whether new volumes may lie on a device."""
    yield Command(("pvchange", "--allocatable", "y" if wanted else "n", device))


def repair(group: str) -> Steps[None]:
    """Take devices that are gone out of a volume group, and what lay on them."""
    yield Command(("vgreduce", "--removemissing", "--force", group))
