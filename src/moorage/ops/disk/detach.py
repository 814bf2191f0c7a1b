# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk detach``: a disk loses its owner and keeps its data."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Question, Sought, Task, View
from moorage.model import Config, Disk, Instance, Node, successor
from moorage.ops.asking import node_tasks
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import (
    check_known,
    check_unused,
    holds,
    last_holder,
    runs,
    seek,
)
from moorage.ops.guests.plugging import check_plugs
from moorage.ops.volumes import behind, copies
from moorage.ops.volumes.disk_names import (
    freed,
    freed_name,
    hold_freed,
    leaving,
    told_freed,
)
from moorage.ops.volumes.disk_work import hold_owned


def owner_of(config: Config, disk: Disk) -> Instance:
    """Return the instance that has the disk; raise `WrongState` if none does."""
    owner = config.owner(disk)
    if owner is None:
        raise WrongState(
            f"disk {disk.label} is not attached to any instance", disk=disk.uuid
        )
    return owner


def detach_tasks(
    view: View, instance: Instance, disk: Disk, *, hot: bool, ends: bool = False
) -> Iterator[Task]:
    """Yield the tasks of one detach: the guest lets go first, the record is last.

    Parameters
    ----------
    ends
        Whether the disk is to be removed at once.
    """
    config = view.config
    if disk.uuid not in instance.disks:
        raise BadInput(f"disk {disk.label} is taken from {instance.name} twice")
    node = config.home(instance)
    slot = instance.disks.index(disk.uuid)
    if hot:
        yield guest_tasks.unplug(instance, disk, node, slot)
    if (hot or instance.disks_active) and not node.offline:
        yield from copies.detach(config, disk, node)
    left = tuple(uuid for uuid in instance.disks if uuid != disk.uuid)
    last = last_holder(view, instance, disk)
    lags = behind.freed(view, disk, node, active=holds(view, instance))
    free = successor(
        disk,
        view.now,
        last_node=last,
        group=node.group,
        behind=lags,
        **(leaving(config, disk) if ends else freed(config, [disk])[disk.uuid]),
    )
    rest = successor(instance, view.now, disks=left)
    yield view.record(f"take disk {disk.label} from {instance.name}", free, rest)


class DiskDetach(Operation, frozen=True, kw_only=True):
    """Detach a disk from its instance; hot when the instance runs.

    One that belongs to nobody, and that a node still holds because its storage could
    not be stopped, is detached there.

    Attributes
    ----------
    disk
        Name or uuid.
    """

    op_id = "OP_DISK_DETACH"

    disk: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance; share the nodes."""
        disk = view.config.disk(self.disk)
        yield from hold_owned(view.config, disk)
        yield from hold_freed(view.config, [disk])

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether the instance runs; without one, who holds the disk."""
        instance = view.config.owner(view.config.disk(self.disk))
        if instance:
            yield node_tasks.guest_on(instance.primary_node, instance)
            yield from behind.ask(view.config, instance)
            return
        yield from ask_holders(view.config)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest: somebody else may get the disk."""
        instance = view.config.owner(view.config.disk(self.disk))
        if instance:
            yield from seek(view.config, instance)

    def check(self, view: View) -> None:
        """Refuse while nobody can tell whether the instance runs."""
        disk = view.config.disk(self.disk)
        if not view.config.owner(disk) and holders(view, disk):
            return
        owner = owner_of(view.config, disk)
        check_known(view, owner)
        check_unused(view, owner)
        check_plugs(view, owner, "a disk that is unplugged")

    def warnings(self, view: View) -> Iterator[str]:
        """Say what the disk is called, if its name is another one's."""
        disk = view.config.disk(self.disk)
        if view.config.owner(disk):
            yield from told_freed(view.config, [disk])

    def tasks(self, view: View) -> Iterator[Task]:
        """Unplug, detach, record."""
        disk = view.config.disk(self.disk)
        instance = view.config.owner(disk)
        if instance:
            yield from detach_tasks(view, instance, disk, hot=runs(view, instance))
            return
        for node in holders(view, disk):
            yield node_tasks.detach(view.config, disk, node, held=False)

    def result(self, view: View, _results: Sequence[Any]) -> list[list[str]]:
        """Return the change in the words of ``gnt-instance modify``."""
        disk = view.config.disk(self.disk)
        instance = view.config.owner(disk)
        slot = f"/{instance.disks.index(disk.uuid)}" if instance else ""
        name = freed_name(view.config, disk)
        return [[f"disk{slot}", told_detach(disk, name) if instance else "detach"]]


def told_detach(disk: Disk, name: str | None) -> str:
    """Return a detach in the words of ``gnt-instance modify``; a new name is told."""
    return "detach" if name == disk.name else f"detach:name={name}"


def ask_holders(config: Config) -> Iterator[Question]:
    """Ask all nodes what they hold."""
    for node in config.named(Node):
        if not node.offline:
            yield node_tasks.facts_on(node)


def holders(view: View, disk: Disk) -> list[Node]:
    """Return the nodes that say that they hold a disk; one that is silent does not."""
    nodes = view.config.named(Node)
    told = ((node, view.told(node_tasks.facts_on(node))) for node in nodes)
    return [
        node
        for node, facts in told
        if facts and any(held.disk == disk.uuid for held in facts.held)
    ]
