# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk attach``: a disk gets an owner, running or not."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any

from msgspec import Meta

from moorage.errors import BadInput, WrongState
from moorage.jobs import Case, Lock, Operation, Question, Task, View
from moorage.model import Disk, Instance, Node, successor
from moorage.model.objects import MOST_DISKS
from moorage.ops.asking import node_tasks
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import check_known, runs
from moorage.ops.guests.plugging import check_plugs
from moorage.ops.volumes import copies, pairs, pools
from moorage.ops.volumes.disk_access import ask_reach, check_reach, check_sound
from moorage.ops.volumes.disk_names import check_unused, hold_name, to_attach


def check_free(view: View, disk: Disk, instance: Instance) -> None:
    """Raise `Refused` if `disk` cannot be attached to `instance`."""
    check_sound(disk)
    owner = view.config.owner(disk)
    if owner:
        where = view.config.home(owner).name
        raise WrongState(
            f"disk {disk.label} is attached to instance {owner.name} on node {where}: "
            f"it cannot be attached to {instance.name} too",
            hint=f"gnt-disk detach {view.config.word_for(disk)}",
            disk=disk.uuid,
            instance=owner.name,
        )
    node = view.config.home(instance)
    check_reach(view, disk, node)
    copies.check_alone(view.config, disk, node)
    pairs.check_alike(view.config, instance, disk)
    if disk.name:
        sole = disk.by_name and disk.cname is None  # what storage calls it is no news
        check_unused(view.config, disk.name, instance, sole=sole, disk=disk)


def check_index(instance: Instance, index: int) -> None:
    """Raise `Refused` if no disk can go to this slot; -1 is the end."""
    if not -1 <= index <= len(instance.disks):
        raise BadInput(
            f"instance {instance.name} has {len(instance.disks)} disks: a new one goes "
            f"to slot 0 to {len(instance.disks)}, not {index}"
        )
    if len(instance.disks) >= MOST_DISKS:
        raise WrongState(
            f"instance {instance.name} has {MOST_DISKS} disks, the most it can"
        )


def inserted(instance: Instance, disk: str, index: int) -> tuple[str, ...]:
    """Return the instance's disks with one more."""
    at = len(instance.disks) if index == -1 else index
    return (*instance.disks[:at], disk, *instance.disks[at:])


def claimed(disk: Disk, instance: Instance, view: View) -> Disk:
    """Return the disk in its next epoch, in the group of its new owner."""
    group = view.config.home(instance).group
    return successor(disk, view.now, epoch=disk.epoch + 1, group=group)


def attach_tasks(
    view: View, instance: Instance, disk: Disk, index: int, *, hot: bool
) -> Iterator[Task]:
    """Yield the tasks of one attach.

    The owner is recorded first: from then on nobody else can have the disk, and only
    steps of the new epoch can touch it.
    """
    config = view.config
    node = config.home(instance)
    mine = claimed(disk, instance, view)
    disks = inserted(instance, disk.uuid, index)
    owner = successor(instance, view.now, disks=disks)
    what = f"give disk {disk.label} to {instance.name}, epoch {mine.epoch}"
    yield view.record(what, mine, owner)
    if hot or instance.disks_active:
        yield from copies.attach(config, mine, node)
    if hot:
        slot = disks.index(disk.uuid)
        yield guest_tasks.plug(owner, mine, node, slot)


class DiskAttach(Operation, frozen=True, kw_only=True):
    """Attach a disk to an instance; hot when the instance runs.

    Attributes
    ----------
    disk
        Name or uuid of one that no instance has.
    instance_name
        Name or uuid of the instance.
    index
        The slot; -1 for the end.
    """

    op_id = "OP_DISK_ATTACH"

    disk: str
    instance_name: str
    index: Annotated[int, Meta(ge=-1)] = -1

    def case(self, view: View) -> "Attached":
        """Return what it comes to on a view."""
        return view.once(Attached, self)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and the instance; share its node."""
        case = self.case(view)
        yield Lock("node", case.node.uuid, shared=True)
        yield from copies.hold(view.config, [case.disk])
        yield Lock("instance", case.instance.uuid)
        yield Lock("disk", case.disk.uuid)
        yield from pools.hold([case.disk.pool])
        yield from hold_name(case.disk.name, sole=case.disk.by_name)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether the instance runs, and whether its node reaches the disk."""
        case = self.case(view)
        yield node_tasks.guest_on(case.node.uuid, case.instance)
        yield from ask_reach(view.config, [case.disk], case.node)

    def check(self, view: View) -> None:
        """Refuse a disk that is taken, out of reach, or quarantined."""
        case = self.case(view)
        check_index(case.instance, self.index)
        check_free(view, case.disk, case.instance)
        check_known(view, case.instance)
        check_plugs(view, case.instance, "a disk that is plugged")

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the owner, attach on its node, plug."""
        case = self.case(view)
        hot = runs(view, case.instance)
        yield from attach_tasks(view, case.instance, case.disk, self.index, hot=hot)

    def result(self, view: View, _results: Sequence[Any]) -> list[list[str]]:
        """Return the change in the words of ``gnt-instance modify``."""
        case = self.case(view)
        slot = inserted(case.instance, case.disk.uuid, self.index).index(case.disk.uuid)
        return [[f"disk/{slot}", f"attach:size={case.disk.size},mode={case.disk.mode}"]]


class Attached(Case["DiskAttach"]):
    """The disk, the instance that is to have it, and its node."""

    @cached_property
    def instance(self) -> Instance:
        """The instance."""
        return self.view.config.instance(self.request.instance_name)

    @cached_property
    def disk(self) -> Disk:
        """The disk."""
        return to_attach(self.view.config, self.request.disk)

    @cached_property
    def node(self) -> Node:
        """Where the instance is."""
        return self.view.config.home(self.instance)
