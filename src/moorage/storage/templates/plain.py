# SPDX-License-Identifier: BSD-2-Clause
"""``plain``: logical volumes of LVM, on the disks of one node."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, Failed
from moorage.model import Disk, Unit
from moorage.model.templates import FACTS
from moorage.storage.base import (
    Can,
    Capabilities,
    Command,
    Finding,
    Measuring,
    Outcome,
    Output,
    Steps,
    Surveying,
    Template,
    VolumeRequest,
    Where,
    nothing,
)
from moorage.storage.validation import check_name
from moorage.units import Mib

from .ext import plain as plain_note

_MIB = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}")
"""What LVM takes as the name of a group or volume."""
_NOTE = re.compile(r"(originstname|disk)\+")
"""How the notes begin that Ganeti and we leave as tags."""

Row = Mapping[str, str]
"""One line of a report of LVM's."""
Reporting = Generator[Command, Output, list[Row]]


class Plain(Template):
    """Logical volumes with Ganeti's names, thick, and written by LVM alone.

    LVM rounds sizes up to whole extents. A volume that is there already is taken for
    the disk's own if it is as large as LVM would make it, and is never overwritten.
    """

    name = "plain"
    capabilities = Capabilities(
        facts=FACTS["plain"],
        can=Can.CREATE
        | Can.GROW
        | Can.SNAPSHOT
        | Can.ADOPT
        | Can.SETINFO
        | Can.ROOM,
    )

    # -- pure questions -----------------------------------------------------------

    @classmethod
    def logical_id(cls, born: VolumeRequest) -> tuple[Any, ...]:
        """Return ``(volume group, volume)``; an adopted volume keeps its name."""
        group = cls._group_of(born.settings, born.params)
        if not group:
            raise BadInput(
                "no volume group is configured for disk template 'plain'",
                hint="gnt-cluster modify --vg-name=NAME, or with the disk: vg=NAME",
            )
        adopted = born.params.get("adopt")
        name = cls.adoptable(adopted) if adopted else f"{born.unique}.disk{born.index}"
        return (group, name)

    @classmethod
    def parameters(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters; an adopted volume is the identity, and is none."""
        kept = super().parameters({k: v for k, v in given.items() if k != "adopt"})
        if "vg" in kept:
            _check_lvm("volume group", kept["vg"])
        if "stripes" in kept and not _is_count(kept["stripes"]):
            raise BadInput(f"stripes is a number from 1 on, not '{kept['stripes']}'")
        return kept

    @classmethod
    def adoptable(cls, volume: str) -> str:
        """Return the name of a logical volume of the disk's group."""
        return _check_lvm("logical volume", volume)

    @classmethod
    def adopted_at(
        cls, volume: str, settings: Mapping[str, str], params: Mapping[str, Any]
    ) -> str:
        """Return the device of a volume of the disk's group."""
        return _device(cls._group_of(settings, params), volume)

    @classmethod
    def snapshot_id(cls, disk: Disk, name: str) -> tuple[Any, ...]:
        """Return the identity of a volume in the same group."""
        return (disk.logical_id[0], check_name("snapshot", name))

    @classmethod
    def unit_key(
        cls,
        settings: Mapping[str, str],
        params: Mapping[str, Any],
        logical_id: Sequence[Any] = (),
    ) -> str:
        """Return the volume group."""
        return str(logical_id[0]) if logical_id else cls._group_of(settings, params)

    @staticmethod
    def _group_of(settings: Mapping[str, str], params: Mapping[str, Any]) -> str:
        return str(params.get("vg") or settings.get("volume_group_name", ""))

    # -- verbs --------------------------------------------------------------------

    def create(self, disk: Disk) -> Steps:
        """Make the volume; one of the right size is left alone, another one refused.

        Signatures of what was there before do not stop it, and its first bytes are
        zeroed: nobody takes an old file system for the disk's.
        """
        found = yield from self._look(disk)
        if found:
            return self._its_own(disk, found)
        group, name = disk.logical_id
        how = yield from self._layout(disk)
        words = ("--yes", "--wipesignatures", "n", "--zero", "y", *how.options)
        size = ("--size", f"{disk.size}m", "--name", name)
        yield Command(("lvcreate", *words, *size, group, *how.devices))
        return Outcome.CHANGED

    def remove(self, disk: Disk) -> Steps:
        """Destroy the volume; one that has snapshots is kept, for they need it."""
        found = yield from self._look(disk)
        if not found:
            return Outcome.UNCHANGED
        group, name = disk.logical_id
        copies = yield from self._report(group, f"origin={name}", "lv_name")
        if copies:
            names = ", ".join(sorted(row["lv_name"] for row in copies))
            raise Failed(
                f"disk {disk.label} has snapshots, which cannot be read without it: "
                f"{names}",
                hint="remove them first: gnt-disk list -o name,logical_id",
                disk=disk.uuid,
            )
        yield Command(("lvremove", "--yes", f"{group}/{name}"))
        return Outcome.CHANGED

    def attach(self, disk: Disk) -> Finding:
        """Let the node have the volume's device: after a boot it may have none."""
        yield from self._there(disk)
        group, name = disk.logical_id
        yield Command(("lvchange", "--activate", "y", f"{group}/{name}"))
        return Where(path=_device(group, name), block=True)

    def detach(self, disk: Disk) -> Steps:
        """Do nothing: a device that nobody has open does no harm."""
        del disk
        return nothing()

    def grow(self, disk: Disk, to: Mib) -> Steps:
        """Extend the volume to `to` MiB, on its own physical volumes with spindles."""
        found = yield from self._there(disk)
        if _bytes(found) >= to * _MIB:
            return Outcome.UNCHANGED
        if found["origin"]:
            raise Failed(
                f"disk {disk.label} is a snapshot of {found['origin']}: LVM cannot "
                "grow it",
                disk=disk.uuid,
            )
        group, name = disk.logical_id
        own = sorted(_devices(found)) if disk.spindles else ()
        yield Command(("lvextend", "--size", f"{to}m", f"{group}/{name}", *own))
        return Outcome.CHANGED

    def snapshot(self, disk: Disk, name: str, size: Mib) -> Steps:
        """Make a snapshot volume with room for all that either side may write.

        It is as large as the volume: LVM knows no other size of a snapshot.
        """
        copy = replace(disk, logical_id=self.snapshot_id(disk, name))
        there = yield from self._look(copy)
        if there:
            return Outcome.UNCHANGED
        found = yield from self._there(disk)
        if _bytes(found) < size * _MIB:
            raise Failed(
                f"disk {disk.label} has {_bytes(found) // _MIB} MiB: a snapshot of it "
                f"cannot have {size} MiB",
                disk=disk.uuid,
            )
        group, origin = disk.logical_id
        words = ("--snapshot", "--extents", "100%ORIGIN", "--name", name)
        yield Command(("lvcreate", "--yes", *words, f"{group}/{origin}"))
        return Outcome.CHANGED

    def setinfo(self, disk: Disk, text: str) -> Steps:
        """Keep the note as a tag, in place of the one before."""
        found = yield from self._there(disk)
        wanted, tags = plain_note(text), _words(found["lv_tags"])
        gone = [one for one in tags if _NOTE.match(one) and one != wanted]
        if wanted in tags and not gone:
            return Outcome.UNCHANGED
        words = [word for one in gone for word in ("--deltag", one)]
        group, name = disk.logical_id
        target = ("--addtag", wanted, f"{group}/{name}")
        yield Command(("lvchange", *words, *target))
        return Outcome.CHANGED

    def measure(self, disk: Disk) -> Measuring:
        """Return the volume's size."""
        found = yield from self._there(disk)
        return Mib(_bytes(found) // _MIB)

    def room(self) -> Surveying:
        """Ask LVM for the volume group; a node without it has no such unit."""
        group = self._group_of(self.site.settings, {})
        if not group:
            return ()
        ask = ("-o", "vg_size,vg_free", "--select", f"vg_name={group}")
        try:
            told = yield _reading("vgs", *ask)
        except Failed:  # no LVM here
            return ()
        return tuple(
            Unit(
                template=self.name,
                key=group,
                total=Mib(int(row["vg_size"]) // _MIB),
                free=Mib(int(row["vg_free"]) // _MIB),
            )
            for row in _rows(told, "vg")
        )

    # -- parts of verbs -----------------------------------------------------------

    def _report(self, group: str, which: str, fields: str) -> Reporting:
        ask = ("-o", fields, "--select", which, group)
        told = yield _reading("lvs", *ask)
        return _rows(told, "lv")

    def _look(self, disk: Disk) -> Generator[Command, Output, Row | None]:
        """Return what LVM tells of the volume; None if there is none."""
        group, name = disk.logical_id
        _check_lvm("volume group", group)
        _check_lvm("logical volume", name)
        fields = "lv_name,lv_size,lv_tags,origin,vg_extent_size,devices"
        rows = yield from self._report(group, f"lv_name={name}", fields)
        if not rows:
            return None
        # A volume on several devices has a line for each of them.
        return {**rows[0], "devices": ",".join(row["devices"] for row in rows)}

    def _there(self, disk: Disk) -> Generator[Command, Output, Row]:
        found = yield from self._look(disk)
        if found is None:
            told = "/".join(disk.logical_id)
            raise Failed(
                f"there is no logical volume {told} on node {self.site.node}",
                disk=disk.uuid,
            )
        return found

    def _its_own(self, disk: Disk, found: Row) -> Outcome:
        """Refuse a volume that was not made for the disk."""
        more = _bytes(found) - disk.size * _MIB
        if not 0 <= more < int(found["vg_extent_size"]):
            raise Failed(
                f"logical volume {'/'.join(disk.logical_id)} exists with "
                f"{_bytes(found) // _MIB} MiB instead of {disk.size}: it is not "
                "overwritten",
                disk=disk.uuid,
            )
        return Outcome.UNCHANGED

    def _layout(self, disk: Disk) -> Generator[Command, Output, "_Layout"]:
        """Say over which physical volumes a new volume is to be spread."""
        wanted = int(disk.params.get("stripes", 1))
        if wanted == 1 and not disk.spindles:
            return _Layout()
        group = disk.logical_id[0]
        fields = "pv_name,pv_size,pv_free,pv_used"
        told = yield _reading("pvs", "-o", fields, "--select", f"vg_name={group}")
        if disk.spindles:
            return _alone(disk, _rows(told, "pv"))
        stripes = min(wanted, len(_rows(told, "pv")))  # as many as there can be
        return _Layout(("--stripes", f"{stripes}"))


class _Layout:
    """How lvcreate is told to spread a volume, and over which devices."""

    def __init__(
        self, options: tuple[str, ...] = (), devices: tuple[str, ...] = ()
    ) -> None:
        self.options = options
        self.devices = devices


def _alone(disk: Disk, rows: list[Row]) -> _Layout:
    """Return as many empty physical volumes as the disk has spindles.

    Raises
    ------
    Failed
        If there are not so many, or they are too small.
    """
    wanted = disk.spindles or 0
    empty = sorted(
        (row for row in rows if not int(row["pv_used"])), key=lambda row: row["pv_name"]
    )
    taken = empty[:wanted]
    room = sum(int(row["pv_free"]) for row in taken)
    if len(taken) < wanted:
        raise Failed(
            f"not enough empty physical volumes (spindles) for disk {disk.label}: "
            f"{len(empty)} there, {wanted} needed",
            disk=disk.uuid,
        )
    if room < disk.size * _MIB:
        raise Failed(
            f"{wanted} spindles are not enough for the {disk.size} MiB of disk "
            f"{disk.label}: they have {room // _MIB} MiB",
            disk=disk.uuid,
        )
    return _Layout((), tuple(row["pv_name"] for row in taken))


def _reading(program: str, *ask: str) -> Command:
    """Return a question to LVM, answered in bytes."""
    form = ("--reportformat", "json", "--units", "b", "--nosuffix")
    return Command((program, *form, *ask), reads=True)


def _rows(told: Output, kind: str) -> list[Row]:
    """Return the lines of a report."""
    report = json.loads(told.stdout or "{}").get("report") or [{}]
    return list(report[0].get(kind, []))


def _bytes(row: Row) -> int:
    return int(row["lv_size"])


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _devices(row: Row) -> set[str]:
    """Return the physical volumes of ``/dev/sda(0),/dev/sdb(12)``."""
    return {word.partition("(")[0] for word in _words(row["devices"])}


def _device(group: str, name: str) -> str:
    return f"/dev/{group}/{name}"


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text) <= 128


def _check_lvm(what: str, name: str) -> str:
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise BadInput(f"'{name}' is not the name of a {what}")
    return name
