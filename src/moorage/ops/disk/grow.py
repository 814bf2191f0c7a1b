# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk grow``: more room, attached or not, running or not."""

from collections.abc import Iterator
from typing import Any

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Call, Lock, Operation, Question, Run, Task, View, commit
from moorage.model import Change, Disk, Instance, Node, successor
from moorage.model.change import encode
from moorage.ops import calls
from moorage.ops.birth import LARGEST
from moorage.ops.guests import check_known, runs
from moorage.ops.reach import ask_candidates, can, candidates, worker
from moorage.storage import Can
from moorage.units import Mib


def new_size(disk: Disk, amount: int, *, absolute: bool) -> Mib:
    """Return the size after growing; raise `BadInput` if that is no growth."""
    size = amount if absolute else disk.size + amount
    if size <= disk.size:
        raise BadInput(
            f"disk {disk.label} has {disk.size} MiB: it can grow, not shrink to {size}"
            if size < disk.size
            else f"disk {disk.label} has {disk.size} MiB already"
        )
    if size > LARGEST:
        raise BadInput(f"a disk has at most {LARGEST} MiB, not {size}")
    return Mib(size)


def check_growth(view: View, disk: Disk, amount: int, *, absolute: bool) -> None:
    """Raise `Refused` if the disk cannot grow."""
    new_size(disk, amount, absolute=absolute)
    if disk.quarantine:
        raise WrongState(f"disk {disk.label} is quarantined: {disk.quarantine}")
    if not can(disk, Can.GROW):
        raise NotSupported(
            f"disk {disk.label} cannot grow: template '{disk.dev_type}' has no growth",
            disk=disk.uuid,
        )
    owner = view.config.owner(disk)
    if owner:
        check_known(view, owner)
    if owner is None or view.config.node(owner.primary_node).offline:
        worker(view, disk)


def grow_tasks(view: View, disk: Disk, to: Mib) -> Iterator[Task]:
    """Yield the tasks: the volume, the record, then the guest.

    A volume cannot shrink again, so once it grows the job goes on to the end.
    """
    config = view.config
    owner = config.owner(disk)
    asleep = owner is None or config.node(owner.primary_node).offline
    node = (
        worker(view, disk) if asleep or not owner else config.node(owner.primary_node)
    )
    active = (
        owner is not None and not asleep and (owner.disks_active or runs(view, owner))
    )
    if not active:
        yield calls.attach(config, disk, node)
    yield Run(
        what=f"grow disk {disk.label} to {to} MiB on {node.name}",
        node=node.uuid,
        do=calls.disk_call(config, "disk.grow", disk, to=to),
        final=True,
    )
    grown = successor(disk, view.now, size=to)
    change = Change((grown,))
    yield commit(f"record {to} MiB of {disk.label}", change, config.before(change))
    if not active:
        yield calls.detach(config, grown, node, tolerant=True)
        return
    # A grown volume may answer elsewhere, and may not have grown as it was told to.
    yield calls.attach_again(config, grown, node)
    if owner and runs(view, owner):
        yield tell_guest(view, owner, grown, node)


def tell_guest(view: View, instance: Instance, disk: Disk, node: Node) -> Run:
    """Return the task that shows a running guest the new size."""
    more: dict[str, Any] = {
        "disk": encode(disk),
        "slot": instance.disks.index(disk.uuid),
    }
    call: Call = calls.guest_call(view.config, "instance.resize", instance, **more)
    return Run(
        what=f"show {instance.name} the new size of disk {disk.label}",
        node=node.uuid,
        do=call,
        tolerant=True,
    )


def grow_locks(view: View, disk: Disk) -> Iterator[Lock]:
    """Hold the disk and its instance; share the nodes that do the work."""
    owner = view.config.owner(disk)
    yield Lock("disk", disk.uuid)
    if owner:
        yield Lock("instance", owner.uuid)
        yield Lock("node", owner.primary_node, shared=True)
    for node in candidates(view.config, disk):
        yield Lock("node", node.uuid, shared=True)


def grow_questions(view: View, disk: Disk) -> Iterator[Question]:
    """Ask whether the instance runs, and who can work on a sleeping disk."""
    owner = view.config.owner(disk)
    if owner:
        yield calls.guest_on(owner.primary_node, owner)
    yield from ask_candidates(view.config, disk)


class DiskGrow(Operation, frozen=True, kw_only=True):
    """Grow a disk.

    Attributes
    ----------
    amount
        MiB: what to add, or (`absolute`) the new size.
    """

    op_id = "OP_DISK_GROW"

    disk: str
    amount: int
    absolute: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance."""
        yield from grow_locks(view, view.config.disk(self.disk))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, and who can work on it."""
        yield from grow_questions(view, view.config.disk(self.disk))

    def check(self, view: View) -> None:
        """Refuse to shrink, and templates that cannot grow."""
        disk = view.config.disk(self.disk)
        check_growth(view, disk, self.amount, absolute=self.absolute)

    def tasks(self, view: View) -> Iterator[Task]:
        """Grow the volume, record it, tell the guest."""
        disk = view.config.disk(self.disk)
        to = new_size(disk, self.amount, absolute=self.absolute)
        yield from grow_tasks(view, disk, to)
