# SPDX-License-Identifier: BSD-2-Clause
"""What LVM's programs are asked, and how they answer."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.errors import BadInput, Failed
from moorage.model import Disk
from moorage.storage.command import Command, Steps
from moorage.units import MIB, Mib

Row = Mapping[str, str]
"""One line of a report; sizes in bytes."""

_KINDS = {"lvs": "lv", "vgs": "vg", "pvs": "pv"}
_MISSING = "[unknown]"
_NAME = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}")


def check_name(what: str, name: str) -> str:
    """Return a name if a volume group or logical volume can have it.

    Raises
    ------
    BadInput
        If LVM would take it for something else.
    """
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise BadInput(f"'{name}' is not the name of a {what}")
    return name


def device(group: str, name: str) -> str:
    """Return the device of a logical volume."""
    return f"/dev/{group}/{name}"


def report(
    program: str, which: str, fields: str, *of: str, whole: bool = False
) -> Steps[list[Row]]:
    """Ask ``lvs``, ``vgs`` or ``pvs``; nothing that fits is no failure.

    Parameters
    ----------
    which
        LVM's own words of selection, as ``lv_name=root``; empty for all.
    of
        The volume group that must be there.
    whole
        Whether all of a long answer is wanted.
    """
    form = ("--reportformat", "json", "--units", "b", "--nosuffix")
    ask = ("-o", fields, *(("--select", which) if which else ()), *of)
    told = yield Command((program, *form, *ask), reads=True, whole=whole)
    found = json.loads(told.stdout or "{}").get("report") or [{}]
    return list(found[0].get(_KINDS[program], []))


def size_of(row: Row) -> int:
    """Return the bytes of a logical volume."""
    return int(row["lv_size"])


def usable(row: Row) -> Mib:
    """Return what is free of a volume group; without one of its devices LVM adds none.

    >>> usable({"vg_free": "8388608", "vg_missing_pv_count": "0"})
    8
    """
    return Mib(0 if int(row["vg_missing_pv_count"]) else int(row["vg_free"]) // MIB)


def words(text: str) -> list[str]:
    """Return what stands between commas."""
    return [word for word in text.split(",") if word]


def devices_of(row: Row) -> list[str]:
    """Return the physical volumes of a logical one.

    >>> devices_of({"devices": "/dev/sdb(12),/dev/sda(0),/dev/sdb(40)"})
    ['/dev/sda', '/dev/sdb']
    """
    return sorted({word.partition("(")[0] for word in words(row["devices"])})


def spindles_of(group: str, devices: Sequence[Row] | None) -> dict[str, Any]:
    """Return the physical volumes of a group, as the fields of its unit.

    Parameters
    ----------
    devices
        Those of all groups; None where nobody asked.
    """
    if devices is None:
        return {}
    own = [row for row in devices if row["vg_name"] == group]
    there = sorted(
        (row["pv_name"], int(row["pv_free"]) // MIB)
        for row in own
        if row["pv_name"] != _MISSING and not int(row["pv_used"])
    )
    return {"spindles": len(own), "empty": tuple(Mib(free) for _, free in there)}


@dataclass(frozen=True, slots=True)
class Layout:
    """How ``lvcreate`` is told to spread a volume.

    Attributes
    ----------
    devices
        The physical volumes that it may use; empty for any.
    """

    options: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def alone(disk: Disk, spindles: int, devices: Sequence[Row]) -> Layout:
    """Return as many empty physical volumes as a disk has spindles.

    Raises
    ------
    Failed
        If there are not so many, or they are too small.
    """
    there = [row for row in devices if row["pv_name"] != _MISSING]
    empty = sorted(row["pv_name"] for row in there if not int(row["pv_used"]))
    taken = empty[:spindles]
    if len(taken) < spindles:
        raise Failed(
            f"not enough empty physical volumes (spindles) for disk {disk.label}: "
            f"{len(taken)} there, {spindles} needed",
            disk=disk.uuid,
        )
    room = sum(int(row["pv_free"]) for row in devices if row["pv_name"] in taken)
    if room < disk.size * MIB:
        raise Failed(
            f"{spindles} spindles are not enough for the {disk.size} MiB of disk "
            f"{disk.label}: they have {room // MIB} MiB",
            disk=disk.uuid,
        )
    return Layout((), tuple(taken))
