# SPDX-License-Identifier: BSD-2-Clause
"""``plain``: logical volumes of LVM, on the disks of one node."""

import re
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.errors import BadInput, Failed, NotSupported, WrongState
from moorage.model import Disk, Need, Unit, Volume
from moorage.storage import lvm
from moorage.storage.base import Template, VolumeRequest, nothing
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import Command, Id, Outcome, Params, Settings, Steps, Where
from moorage.units import MIB, Mib, mib_for

from .ext import plain as plain_note

_NOTE = re.compile(r"(originstname|disk)\+")
"""How the notes begin that Ganeti and we leave as tags."""
EXCLUSIVE = "exclusive_storage"
"""The setting of a node where disks have physical volumes for themselves."""
_POOLS = ("thin,pool", "cache,pool")
"""Layouts of volumes that hold no data of a disk."""


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
        | Can.ROOM
        | Can.LIST,
        programs=("lvs", "vgs", "pvs", "lvcreate", "lvremove", "lvextend", "lvchange"),
        modules=("dm_mod",),
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return ``(volume group, volume)``; an adopted volume keeps its name."""
        (group,) = cls.unit_keys(request.settings, request.params)
        adopted = request.params.get("adopt")
        if adopted:
            return (group, cls.adoptable(adopted))
        return (group, request.volume or f"{request.unique}.disk{request.index}")

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the parameters; an adopted volume is the identity, and is none."""
        kept = super().parameters({k: v for k, v in given.items() if k != "adopt"})
        if "vg" in kept:
            lvm.check_name("volume group", kept["vg"])
        return kept

    @classmethod
    def adoptable(cls, volume: str) -> str:
        """Return the name of a logical volume of the disk's group."""
        return lvm.check_name("logical volume", volume)

    @classmethod
    def adopted_at(cls, volume: str, settings: Settings, params: Params) -> str:
        """Return the device of a volume of the disk's group."""
        return lvm.device(cls._group_of(settings, params), volume)

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the volume group."""
        return str(logical_id[0]) if logical_id else cls._group_of(settings, params)

    @classmethod
    def unit_keys(cls, settings: Settings, params: Params) -> tuple[str, ...]:
        """Return the volume group; raise `BadInput` if nobody names one."""
        group = cls._group_of(settings, params)
        if not group:
            raise BadInput(
                "no volume group is configured in this cluster",
                hint="gnt-cluster modify --vg-name=NAME",
            )
        return (group,)

    @staticmethod
    def _group_of(settings: Settings, params: Params) -> str:
        return str(params.get("vg") or settings.get("volume_group_name", ""))

    def create(self, disk: Disk) -> Steps[Outcome]:
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

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Destroy the volume; one that has snapshots is kept, for they need it."""
        found = yield from self._look(disk)
        if not found:
            return Outcome.UNCHANGED
        group, name = disk.logical_id
        copies = yield from lvm.report("lvs", f"origin={name}", "lv_name", group)
        if copies:
            names = ", ".join(sorted(row["lv_name"] for row in copies))
            raise WrongState(
                f"disk {disk.label} has snapshots, which cannot be read without it: "
                f"{names}",
                hint="remove them first: gnt-disk list -o name,logical_id",
                disk=disk.uuid,
            )
        yield Command(("lvremove", "--yes", f"{group}/{name}"))
        return Outcome.CHANGED

    def attach(self, disk: Disk) -> Steps[Where]:
        """Let the node have the volume's device: after a boot it may have none."""
        yield from self._there(disk)
        group, name = disk.logical_id
        # A snapshot is activated with its origin; LVM would ask whether it may.
        yield Command(("lvchange", "--yes", "--activate", "y", f"{group}/{name}"))
        return Where(path=lvm.device(group, name), block=True)

    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Do nothing: a device that nobody has open does no harm."""
        del disk
        return nothing()

    def grow(self, disk: Disk, to: Mib) -> Steps[Outcome]:
        """Extend the volume to `to` MiB, on its own physical volumes with spindles."""
        found = yield from self._there(disk)
        if lvm.size_of(found) >= to * MIB:
            return Outcome.UNCHANGED
        if found["origin"]:
            raise NotSupported(
                f"disk {disk.label} is a snapshot of {found['origin']}: LVM cannot "
                "grow it",
                disk=disk.uuid,
            )
        group, name = disk.logical_id
        own = lvm.devices_of(found) if disk.spindles else ()
        yield Command(("lvextend", "--size", f"{to}m", f"{group}/{name}", *own))
        return Outcome.CHANGED

    def snapshot(self, disk: Disk, name: str, size: Mib) -> Steps[Outcome]:
        """Make a snapshot volume with room for all that either side may write.

        It is as large as the volume: LVM knows no other size of a snapshot. With
        spindles it is on the volume's own physical ones.
        """
        copy = replace(disk, logical_id=self.snapshot_id(disk, name))
        if (yield from self._look(copy)):
            return Outcome.UNCHANGED
        found = yield from self._there(disk)
        there = lvm.size_of(found) // MIB
        if there < size:
            raise Failed(
                f"disk {disk.label} has {there} MiB: a snapshot of it cannot have "
                f"{size} MiB",
                disk=disk.uuid,
            )
        group, origin = disk.logical_id
        words = ("--snapshot", "--extents", "100%ORIGIN", "--name", name)
        own = lvm.devices_of(found) if disk.spindles else ()
        yield Command(("lvcreate", "--yes", *words, f"{group}/{origin}", *own))
        return Outcome.CHANGED

    def setinfo(self, disk: Disk, text: str) -> Steps[Outcome]:
        """Keep the note as a tag, in place of the one before."""
        found = yield from self._there(disk)
        wanted, tags = plain_note(text), lvm.words(found["lv_tags"])
        gone = [one for one in tags if _NOTE.match(one) and one != wanted]
        if wanted in tags and not gone:
            return Outcome.UNCHANGED
        words = [word for one in gone for word in ("--deltag", one)]
        group, name = disk.logical_id
        target = ("--addtag", wanted, f"{group}/{name}")
        yield Command(("lvchange", *words, *target))
        return Outcome.CHANGED

    def measure(self, disk: Disk) -> Steps[Mib]:
        """Return the volume's size."""
        found = yield from self._there(disk)
        return Mib(lvm.size_of(found) // MIB)

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Ask for the volume group."""
        group = self._group_of(self.site.settings, self.site.params)
        if not group:
            why = "no volume group is set: gnt-cluster modify --vg-name=NAME"
            return (Need(kind="volume group", name="", problem=why),)
        found = yield from self.room()
        known = {unit.key for unit in found}
        why = "" if group in known else f"there is no volume group {group}"
        return (Need(kind="volume group", name=group, problem=why),)

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Ask LVM for its volume groups: a disk may name another than the cluster's."""
        fields = "vg_name,vg_size,vg_free,vg_missing_pv_count"
        try:
            rows = yield from lvm.report("vgs", "", fields)
        except Failed:  # no LVM here
            return ()
        spread = yield from self._spread()
        return tuple(
            Unit(
                template=self.name,
                key=row["vg_name"],
                total=Mib(int(row["vg_size"]) // MIB),
                free=lvm.usable(row),
                **lvm.spindles_of(row["vg_name"], spread),
            )
            for row in rows
        )

    def _spread(self) -> Steps[list[lvm.Row] | None]:
        """Ask for the physical volumes, where disks have some for themselves."""
        if not self.site.settings.get(EXCLUSIVE):
            return None
        found = yield from lvm.report("pvs", "", "vg_name,pv_name,pv_free,pv_used")
        return found

    def volumes(self, params: Params) -> Steps[tuple[Volume, ...]]:
        """Return the logical volumes of a group, but for those of LVM's own."""
        group = self._group_of(self.site.settings, params)
        fields = "lv_name,lv_size,lv_layout,lv_tags,origin"
        rows = yield from lvm.report("lvs", "", fields, group, whole=True)
        return tuple(
            Volume(
                logical_id=(group, row["lv_name"]),
                size=mib_for(lvm.size_of(row)),
                note=row["lv_tags"],
                origin=row.get("origin", ""),
            )
            for row in rows
            if row["lv_layout"] not in _POOLS
        )

    def _look(self, disk: Disk) -> Steps[lvm.Row | None]:
        """Return what LVM tells of the volume; None if there is none."""
        group, name = disk.logical_id
        lvm.check_name("volume group", group)
        lvm.check_name("logical volume", name)
        fields = "lv_name,lv_size,lv_tags,origin,vg_extent_size,devices"
        rows = yield from lvm.report("lvs", f"lv_name={name}", fields, group)
        if not rows:
            return None
        # A volume on several devices has a line for each of them.
        return {**rows[0], "devices": ",".join(row["devices"] for row in rows)}

    def there(self, disk: Disk) -> Steps[bool]:
        """Ask whether the volume is on this node."""
        found = yield from self._look(disk)
        return found is not None

    def _there(self, disk: Disk) -> Steps[lvm.Row]:
        found = yield from self._look(disk)
        if found is None:
            told = "/".join(disk.logical_id)
            raise Failed(
                f"there is no logical volume {told} on node {self.site.node}",
                disk=disk.uuid,
            )
        return found

    def _its_own(self, disk: Disk, found: lvm.Row) -> Outcome:
        """Refuse a volume that was not made for the disk."""
        more = lvm.size_of(found) - disk.size * MIB
        if not 0 <= more < int(found["vg_extent_size"]):
            raise Failed(
                f"logical volume {'/'.join(disk.logical_id)} exists with "
                f"{lvm.size_of(found) // MIB} MiB instead of {disk.size}: it is not "
                "overwritten",
                disk=disk.uuid,
            )
        return Outcome.UNCHANGED

    def _layout(self, disk: Disk) -> Steps[lvm.Layout]:
        """Say over which physical volumes a new volume is to be spread."""
        wanted = int(disk.params.get("stripes", 1))
        if wanted == 1 and not disk.spindles:
            return lvm.Layout()
        group, fields = disk.logical_id[0], "pv_name,pv_free,pv_used"
        devices = yield from lvm.report("pvs", f"vg_name={group}", fields)
        if disk.spindles:
            return lvm.alone(disk, disk.spindles, devices)
        stripes = min(wanted, len(devices))  # as many as there can be
        return lvm.Layout(("--stripes", f"{stripes}"))
