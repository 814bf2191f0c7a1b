# SPDX-License-Identifier: BSD-2-Clause
"""What nodes keep disks on: ``gnt-node list-storage``, ``volumes`` and the like."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from moorage.errors import BadInput, NotFound
from moorage.jobs import Ask, Lock, Operation, Question, Run, Task, View
from moorage.model import Config, Disk, Node, NodeFacts
from moorage.model.caller import Role
from moorage.model.lvm import Lvm, PhysicalVolume
from moorage.ops.asking.silence import unanswered
from moorage.ops.storage.diagnosis import check_columns
from moorage.ops.volumes.directories import places
from moorage.protocol import GetFacts, GetLvm, RepairGroup, SetAllocatable
from moorage.storage.templates import template_named
from moorage.units import counted

from .base import OnNode

Columns = list[list[str | int | bool | None]]
PHYSICAL, GROUP = "lvm-pv", "lvm-vg"


class Silent(Struct, frozen=True, kw_only=True):
    """What nodes told, and why others did not.

    Attributes
    ----------
    silent
        Why a node gave no answer, by its name.
    """

    silent: dict[str, str]


class Unit(Struct, frozen=True, kw_only=True):
    """What a node keeps disks on.

    Attributes
    ----------
    node
        Name of the node.
    type, name
        ``lvm-vg``, ``file`` and so on, and which of them; of ``lvm-pv`` the device.
    size, used, free
        In MiB; None where nobody can tell.
    allocatable
        Whether new volumes may lie on a physical volume.
    """

    node: str
    type: str
    name: str
    size: int | None
    used: int | None
    free: int | None
    allocatable: bool = True


class Units(Silent, frozen=True, kw_only=True):
    """The storage units of nodes.

    Attributes
    ----------
    rows
        One a unit.
    """

    rows: list[Unit]


class LogicalVolume(Struct, frozen=True, kw_only=True):
    """A logical volume of a node.

    Attributes
    ----------
    node, phys, vg, name
        Where it is: node, devices with commas between, volume group; and its name.
    size
        In MiB.
    instance, disk
        Whose it is, by name or label; None if it is nobody's.
    """

    node: str
    phys: str
    vg: str
    name: str
    size: int
    instance: str | None
    disk: str | None


class LogicalVolumes(Silent, frozen=True, kw_only=True):
    """The logical volumes of nodes.

    Attributes
    ----------
    rows
        One a volume.
    """

    rows: list[LogicalVolume]


def lvm_on(node: Node) -> Ask[Lvm]:
    """Ask a node for its LVM."""
    return Ask(node.uuid, GetLvm())


def _room_on(config: Config, node: Node) -> Ask[NodeFacts]:
    where = places(config, config.group(node.group))
    return Ask(node.uuid, GetFacts(places=where, brief=True))


class _OfNodes(Operation, frozen=True, kw_only=True):
    """A question about some nodes, or all.

    Attributes
    ----------
    nodes
        Their names; all that are not marked offline if none is named.
    output_fields
        Which values to tell of each row, as lists; None for objects with all.
    """

    row: ClassVar[type[Struct]]

    nodes: tuple[str, ...] = ()
    output_fields: tuple[str, ...] | None = None

    def chosen(self, view: View) -> list[Node]:
        """Return the nodes that are asked."""
        named = [view.config.node(name) for name in self.nodes]
        return named or view.config.online()

    def check(self, view: View) -> None:
        """Refuse nothing but names that are not known."""
        self.chosen(view)
        check_columns(self.row.__struct_fields__, self.output_fields or ())

    def silent(self, view: View) -> dict[str, str]:
        """Return why nodes did not answer, by name."""
        return unanswered(view, self.questions(view))


def _columns(rows: Sequence[Struct], names: Sequence[str]) -> Columns:
    return [[getattr(row, name) for name in names] for row in rows]


class NodeQueryStorage(_OfNodes, frozen=True, kw_only=True):
    """Tell what nodes keep disks on, and how much room there is.

    Attributes
    ----------
    storage_type
        One type alone: ``lvm-pv``, ``lvm-vg``, ``file`` and so on.
    name
        One storage unit alone.
    """

    op_id = "OP_NODE_QUERY_STORAGE"
    role = Role.READ
    row = Unit

    storage_type: str | None = None
    name: str | None = None

    def questions(self, view: View) -> Iterator[Question]:
        """Ask for physical volumes, or else for storage units."""
        for node in self.chosen(view):
            if self.storage_type == PHYSICAL:
                yield lvm_on(node)
            else:
                yield _room_on(view.config, node)

    def result(self, view: View, _results: Sequence[Any]) -> Units | Columns:
        """Return a row for each unit, and why nodes did not answer."""
        rows = [row for node in self.chosen(view) for row in self._rows(view, node)]
        if self.name:
            rows = [row for row in rows if row.name == self.name]
        if self.output_fields is not None:
            return _columns(rows, self.output_fields)
        return Units(rows=rows, silent=self.silent(view))

    def _rows(self, view: View, node: Node) -> Iterator[Unit]:
        if self.storage_type == PHYSICAL:
            found = view.told(lvm_on(node)) or Lvm()
            for one in found.physical:
                row = _row(node, PHYSICAL, one.name, one.size, one.free)
                yield replace(row, allocatable=one.allocatable)
        else:
            yield from self._units(node, view.told(_room_on(view.config, node)))

    def _units(self, node: Node, facts: NodeFacts | None) -> Iterator[Unit]:
        for unit in facts.units if facts else ():
            kind = template_named(unit.template).capabilities.facts.unit
            if self.storage_type in (None, kind):
                yield _row(node, kind, unit.key, unit.total, unit.free)


def _row(node: Node, kind: str, name: str, size: int | None, free: int | None) -> Unit:
    return Unit(
        node=node.name,
        type=kind,
        name=name,
        size=size,
        used=None if size is None or free is None else size - free,
        free=free,
    )


class NodeQueryvols(_OfNodes, frozen=True, kw_only=True):
    """Tell the logical volumes of nodes, and whose they are."""

    op_id = "OP_NODE_QUERYVOLS"
    role = Role.READ
    row = LogicalVolume

    def questions(self, view: View) -> Iterator[Question]:
        """Ask for the volumes."""
        return (lvm_on(node) for node in self.chosen(view))

    def result(self, view: View, _results: Sequence[Any]) -> LogicalVolumes | Columns:
        """Return a row for each volume, and why nodes did not answer."""
        owners = _owners(view.config)
        rows: list[LogicalVolume] = []
        for node in self.chosen(view):
            found = view.told(lvm_on(node))
            for one in found.logical if found else ():
                disk = owners.get((node.uuid, one.group, one.name))
                owner = view.config.owner(disk) if disk else None
                rows.append(
                    LogicalVolume(
                        node=node.name,
                        phys=",".join(one.devices),
                        vg=one.group,
                        name=one.name,
                        size=one.size,
                        instance=owner.name if owner else None,
                        disk=disk.label if disk else None,
                    )
                )
        if self.output_fields is not None:
            return _columns(rows, self.output_fields)
        return LogicalVolumes(rows=rows, silent=self.silent(view))


def _owners(config: Config) -> dict[tuple[str, ...], Disk]:
    """Return the disk of each volume that a node keeps, by node, group and name."""
    return {
        (node, *volume): disk
        for disk in config.all(Disk)
        for volume in disk.volumes
        for node in disk.nodes
    }


class _OnUnit(OnNode, frozen=True, kw_only=True):
    """A change of a storage unit of one node.

    Attributes
    ----------
    storage_type
        ``lvm-pv`` for a change, ``lvm-vg`` for a repair.
    name
        Of the physical volume (its device), or of the volume group.
    """

    storage_type: str
    name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the node: disks may be made on it meanwhile, as in Ganeti."""
        yield Lock("node", self.node(view).uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the node for what it has."""
        yield lvm_on(self.node(view))

    def found(self, view: View) -> Lvm:
        """Return what the node has."""
        return view.answer(lvm_on(self.node(view))) or Lvm()

    def check_type(self, known: str, what: str) -> None:
        """Raise `BadInput` unless it is the one type that this is for."""
        if self.storage_type != known:
            raise BadInput(
                f"storage of type '{self.storage_type}' cannot be {what}: {known} can"
            )


class NodeModifyStorage(_OnUnit, frozen=True, kw_only=True):
    """Say whether new volumes may lie on a physical volume of a node.

    Attributes
    ----------
    changes
        ``allocatable``, true or false.
    """

    op_id = "OP_NODE_MODIFY_STORAGE"

    changes: dict[str, bool]

    def check(self, view: View) -> None:
        """Refuse what is no physical volume, and changes that there are not."""
        self.check_type(PHYSICAL, "modified")
        if self.changes.keys() != {"allocatable"}:
            raise BadInput(
                "nothing to change was named", hint="--allocatable=yes, or =no"
            )
        self._device(view)

    def _device(self, view: View) -> PhysicalVolume:
        devices = {one.name: one for one in self.found(view).physical}
        if self.name not in devices:
            told = ", ".join(sorted(devices)) or "none"
            raise NotFound(
                f"node {self.node(view).name} has no physical volume {self.name}: it "
                f"has {told}",
                hint=f"gnt-node list-storage -t {PHYSICAL} {self.node(view).name}",
            )
        return devices[self.name]

    def tasks(self, view: View) -> Iterator[Task]:
        """Tell LVM."""
        node, device = self.node(view), self._device(view)
        wanted = self.changes["allocatable"]
        word = "take" if wanted else "take no"
        if device.allocatable != wanted:
            yield Run(
                what=f"let {self.name} on {node.name} {word} new volumes",
                node=node.uuid,
                do=SetAllocatable(device=self.name, wanted=wanted),
                undo=SetAllocatable(device=self.name, wanted=not wanted),
                lasting=True,
            )


class RepairNodeStorage(_OnUnit, frozen=True, kw_only=True):
    """Take devices that are gone out of a volume group of a node.

    Attributes
    ----------
    ignore_consistency
        Whether disks may lose their only copy.
    """

    op_id = "OP_REPAIR_NODE_STORAGE"

    ignore_consistency: bool = False

    def check(self, view: View) -> None:
        """Refuse while disks have volumes there that may lie on the lost device."""
        self.check_type(GROUP, "repaired")
        node = self.node(view)
        owners = _owners(view.config)
        place = (node.uuid, self.name)
        kept = [disk for key, disk in owners.items() if key[:2] == place]
        alone = sorted({disk.label for disk in kept if len(disk.nodes) == 1})
        if alone and not self.ignore_consistency:
            raise BadInput(
                f"volume group {self.name} on node {node.name} has the only copy of "
                f"{counted(len(alone), 'disk')}, {alone[0]} among them: what lay "
                "on a lost device is gone after a repair",
                hint="move them away, or insist: --ignore-consistency",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Tell LVM; there is no way back."""
        node = self.node(view)
        yield Run(
            what=f"repair volume group {self.name} on {node.name}",
            node=node.uuid,
            do=RepairGroup(group=self.name),
            final=True,
            lasting=True,
        )
