# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster repair-disk-sizes``: records take the sizes that devices have."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from moorage.errors import MoorageError, WrongState
from moorage.jobs import Ask, Lock, Operation, Question, Task, View
from moorage.model import Config, Device, Disk, Instance, Node
from moorage.ops.asking.node_tasks import devices_on, of_disk
from moorage.ops.instance.base import hold
from moorage.ops.volumes import identity
from moorage.ops.volumes.disk_access import candidates, check_own, template
from moorage.ops.volumes.disk_work import hold_to_work
from moorage.protocol import MeasureDisks, SizeDisk
from moorage.units import Mib

Resized = tuple[str, int | None, Literal["size"], Mib]
"""Instance, slot, the word, new size; of a disk without an instance: label, no slot."""


class ClusterRepairDiskSizes(Operation, frozen=True, kw_only=True):
    """Correct the recorded sizes of disks whose devices have another one.

    A file or an adopted device is measured where it lies, any other volume where it is
    attached, by its URI if it has no device. What is neither is left as it is, with a
    warning.

    Attributes
    ----------
    instances
        Whose disks; all instances if neither one nor a disk is named.
    disks
        Disks that no instance has, by name or uuid: each is attached where it was last,
        measured, and detached.
    """

    op_id = "OP_CLUSTER_REPAIR_DISK_SIZES"

    instances: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()

    def chosen(self, view: View) -> list[Instance]:
        """Return the instances that are meant."""
        if not self.instances and not self.disks:
            return view.config.named(Instance)
        names = dict.fromkeys(self.instances)
        return [view.config.instance(name) for name in names]

    def free(self, view: View) -> list[Disk]:
        """Return the disks that are named."""
        return [view.config.disk(name) for name in dict.fromkeys(self.disks)]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instances with their disks, and those that are named."""
        for instance in self.chosen(view):
            yield from hold(view.config, instance)
        for disk in self.free(view):
            yield from hold_to_work(view, disk)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask their nodes for what is attached, and for what lies there."""
        config = view.config
        for instance in self.chosen(view):
            yield _attached(config, instance)
            disks = config.disks_of(instance)
            paths = [disk.volume for disk in disks if template(disk).at_rest(disk)]
            if paths:
                yield devices_on(instance.primary_node, sorted(paths))
        for disk in self.free(view):
            yield from _asked(config, disk)

    def check(self, view: View) -> None:
        """Refuse names that are not known, and disks that an instance has."""
        self.chosen(view)
        for disk in self.free(view):
            owner = view.config.owner(disk)
            if owner:
                raise WrongState(
                    f"disk {disk.label} is attached to instance {owner.name}",
                    hint=f"gnt-cluster repair-disk-sizes {owner.name}",
                    disk=disk.uuid,
                )
            check_own(disk)

    def warnings(self, view: View) -> Iterator[str]:
        """Name the disks that cannot be measured."""
        for instance in self.chosen(view):
            for slot, disk in enumerate(view.config.disks_of(instance)):
                try:
                    size = self._measured(view, instance, disk)
                except MoorageError as error:
                    yield f"disk/{slot} of {instance.name}: {error.message}"
                else:
                    if size is None:
                        yield (
                            f"disk/{slot} of {instance.name} is left out: it is not "
                            "attached on its node, or nothing tells its size there"
                        )

        for disk in self.free(view):
            if _size(view, disk) is None:
                yield f"disk {disk.label} is left out: {_why(view, disk)}"

    def tasks(self, view: View) -> Iterator[Task]:
        """Record each size that is another one."""
        for disk, size in self._alone(view):
            what = f"record {size} MiB of disk {disk.label}, not {disk.size}"
            yield view.change(what, disk, final=True, size=size)
        for _, slot, disk, size in self._wrong(view):
            what = f"record {size} MiB of disk/{slot} {disk.label}, not {disk.size}"
            yield view.change(what, disk, final=True, size=size)

    def result(self, view: View, _results: Sequence[Any]) -> list[Resized]:
        """Return instance, slot, ``size`` and the new size of each correction.

        For a disk that no instance has, its name and no slot.
        """
        return [
            *((disk.label, None, "size", size) for disk, size in self._alone(view)),
            *(
                (instance.name, slot, "size", size)
                for instance, slot, _, size in self._wrong(view)
            ),
        ]

    def _alone(self, view: View) -> Iterator[tuple[Disk, Mib]]:
        for disk in self.free(view):
            size = _size(view, disk)
            if size is not None and size != disk.size:
                yield disk, size

    def _wrong(self, view: View) -> Iterator[tuple[Instance, int, Disk, Mib]]:
        for instance in self.chosen(view):
            for slot, disk in enumerate(view.config.disks_of(instance)):
                try:
                    size = self._measured(view, instance, disk)
                except MoorageError:
                    continue  # the warnings tell it
                if size is not None and size != disk.size:
                    yield instance, slot, disk, size

    @staticmethod
    def _measured(view: View, instance: Instance, disk: Disk) -> Mib | None:
        """Return the size of a disk's device in MiB; None if there is none to see."""
        node: Node = view.config.home(instance)
        at = template(disk).at_rest(disk)
        if at:
            found = identity.device(view, node, disk.volume)
            same = disk.identity is None or found.identity == disk.identity
            there = found.kind == ("block" if at.block else "file")
            return found.size if there and same else None
        sizes = view.answer(_attached(view.config, instance)) or []
        found = dict(zip(instance.disks, sizes, strict=False)).get(disk.uuid, Device())
        return found.size if found.kind else None


def _node_of(config: Config, disk: Disk) -> Node | None:
    """Return the node that is to attach a disk that no instance has."""
    return next(iter(candidates(config, disk)), None)


def _asked(config: Config, disk: Disk) -> Iterator[Ask[Device]]:
    node = _node_of(config, disk)
    if node:
        yield Ask(node.uuid, SizeDisk(**of_disk(config, disk)))


def _size(view: View, disk: Disk) -> Mib | None:
    """Return the size of a disk that no instance has; None if nobody tells it."""
    for question in _asked(view.config, disk):
        found = view.told(question)
        if found and found.kind and disk.identity in (None, found.identity):
            return found.size
    return None


def _why(view: View, disk: Disk) -> str:
    """Return why a disk that no instance has cannot be measured."""
    for question in _asked(view.config, disk):
        try:
            view.answer(question)
        except MoorageError as error:
            return error.message
        return "nothing tells its size where it is attached"
    return "no node that could attach it is online"


def _attached(config: Config, instance: Instance) -> Ask[list[Device]]:
    """Ask the node of an instance what it has of the disks that are attached there."""
    disks = MeasureDisks(disks=instance.disks, hypervisor=instance.hypervisor)
    return Ask(config.home(instance).uuid, disks)
