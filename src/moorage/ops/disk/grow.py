# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk grow``: more room, attached or not, running or not."""

from abc import abstractmethod
from collections.abc import Iterator

from msgspec.structs import replace

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Lock, Planner, Question, Run, Task, View
from moorage.model import Claim, Disk, Instance, Node, successor
from moorage.model.kinds import Mebibytes
from moorage.ops.asking import node_tasks
from moorage.ops.guests.foreign import check_ours
from moorage.ops.guests.liveness import check_known, holds, runs
from moorage.ops.planning import placement, policy
from moorage.ops.volumes import copies, pairs
from moorage.ops.volumes.dependents import ask_dependents, check_unbound
from moorage.ops.volumes.disk_access import ask_candidates, can, candidates, check_sound
from moorage.ops.volumes.disk_words import LARGEST_DISK
from moorage.ops.volumes.disk_work import hold_to_work, worker_of
from moorage.ops.volumes.units import has_room, unit_of
from moorage.protocol import GrowDisk, ResizeDisk
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
    if size > LARGEST_DISK:
        raise BadInput(f"a disk has at most {LARGEST_DISK} MiB, not {size}")
    return Mib(size)


class Growing(Planner, frozen=True, kw_only=True):
    """An operation that grows a disk.

    Attributes
    ----------
    absolute
        Whether `amount` is the new size, and not what is added.
    amount
        What to add, or (`absolute`) the new size.
    ignore_ipolicy
        Whether the policy of the instance's node group does not count.
    ignore_capacity
        Whether it may grow over the room that its storage has.
    """

    amount: Mebibytes
    absolute: bool = False
    ignore_ipolicy: bool = False
    ignore_capacity: bool = False

    @abstractmethod
    def subject(self) -> str:
        """Return what job lists name."""

    def summary(self) -> str:
        """Return what job lists show."""
        return f"{self.op_id.removeprefix('OP_')}({self.subject()})"

    @abstractmethod
    def target(self, view: View) -> Disk:
        """Return the disk."""

    def size(self, view: View) -> Mib:
        """Return the size after growing."""
        return new_size(self.target(view), self.amount, absolute=self.absolute)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance."""
        yield from hold_to_work(view, self.target(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what room there is."""
        disk = self.target(view)
        yield from grow_questions(view, disk)
        yield from ask_dependents(view.config, [disk])
        yield from ask_growth_room(view, disk)

    def check(self, view: View) -> None:
        """Refuse to shrink, templates that cannot grow, and more than there is."""
        disk = self.target(view)
        to = self.size(view)
        check_growth(view, disk)
        check_unbound(view, disk)
        owner = view.config.owner(disk)
        if owner:
            check_ours(view, owner, "a disk that grows")
        if owner and not self.ignore_ipolicy:
            _check_policy(view, owner, disk, to)
        if not self.ignore_capacity:
            placement.check_rooms(view, f"disk {disk.label}", self.claims(view))

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim what it grows by, on both nodes of a mirrored one."""
        disk = self.target(view)
        more = unit_of(view.config, disk), self.size(view) - disk.size
        for node in _growing(view, disk):
            yield Claim(node=node.uuid, rooms=(more,))

    def tasks(self, view: View) -> Iterator[Task]:
        """Grow the volume, record it, tell the guest."""
        yield from grow_tasks(view, self.target(view), self.size(view))


def _check_policy(view: View, owner: Instance, disk: Disk, to: Mib) -> None:
    config = view.config
    group = config.group_of(owner)
    others = [one for one in config.disks_of(owner) if one.uuid != disk.uuid]
    after = policy.sizes_of(config, owner, others, [(disk.dev_type, to)])
    policy.check_change(config, group, owner, after)


def _growing(view: View, disk: Disk) -> list[Node]:
    """Return the nodes whose copies of a disk grow."""
    node = worker_of(view, disk)
    return [node, *copies.peers(view.config, disk, node)]


def check_growth(view: View, disk: Disk) -> None:
    """Raise `Refused` if the disk cannot grow."""
    check_sound(disk)
    if not can(disk, Can.GROW):
        raise NotSupported(
            f"disk {disk.label} cannot grow: template '{disk.dev_type}' has no growth",
            disk=disk.uuid,
        )
    owner = view.config.owner(disk)
    if owner:
        check_known(view, owner)
    _check_both(view, disk, worker_of(view, disk))


def _check_both(view: View, disk: Disk, node: Node) -> None:
    """Raise `WrongState` unless both copies of a mirrored disk can grow together."""
    for other in copies.others(view.config, disk, node):
        if other.offline:
            raise WrongState(
                f"node {other.name} is marked offline: its copy of disk {disk.label} "
                "cannot grow",
                hint=f"gnt-node modify -O no {other.name}, once it is back",
                disk=disk.uuid,
                node=other.name,
            )
        pairs.state(view, disk, other)  # it must answer
        if is_active(view, disk):
            pairs.check_in_sync(view, [disk], node)


def is_active(view: View, disk: Disk) -> bool:
    """Whether a disk is in use on the node of its instance."""
    owner = view.config.owner(disk)
    if owner is None or view.config.home(owner).offline:
        return False
    return holds(view, owner)


def grow_tasks(view: View, disk: Disk, to: Mib) -> Iterator[Task]:
    """Yield the tasks: the volume, the record, then the guest.

    A volume cannot shrink again, so once it grows the job goes on to the end.
    """
    config = view.config
    owner = config.owner(disk)
    node = worker_of(view, disk)
    active = is_active(view, disk)
    if not active:
        yield from copies.attach(config, disk, node)
    # The node that writes comes last: its device grows when all copies have the room.
    for one in (*copies.peers(config, disk, node), node):
        yield Run(
            what=f"grow disk {disk.label} to {to} MiB on {one.name}",
            node=one.uuid,
            do=GrowDisk(
                **node_tasks.of_disk(config, disk), to=to, measured=one == node
            ),
            final=True,
        )
    parts = tuple(replace(data, size=to) for data in disk.children[:1])
    parts += disk.children[1:]
    grown = successor(disk, view.now, size=to, children=parts)
    yield view.record(f"record {to} MiB of {disk.label}", grown)
    if not active:
        yield from copies.detach(config, grown, node, tolerant=True)
        return
    if owner and runs(view, owner):
        yield tell_guest(owner, grown, node)


def tell_guest(instance: Instance, disk: Disk, node: Node) -> Run:
    """Return the task that shows a running guest the new size."""
    slot = instance.disks.index(disk.uuid)
    return Run(
        what=f"show {instance.name} the new size of disk {disk.label}",
        node=node.uuid,
        do=ResizeDisk(**node_tasks.of_guest(instance), disk=disk, slot=slot),
        tolerant=True,
    )


def ask_growth_room(view: View, disk: Disk) -> Iterator[Question]:
    """Ask those who work on a disk, or may, for their room, if they can measure it."""
    if has_room(disk.dev_type):
        owner = view.config.owner(disk)
        homes = [view.config.home(owner)] if owner else []
        workers = [*homes, *candidates(view.config, disk)]
        peers = copies.peers(view.config, disk, workers[0]) if workers else []
        asked = {node.uuid: node for node in (*workers, *peers)}
        yield from placement.ask_room(view.config, asked.values())


def grow_questions(view: View, disk: Disk) -> Iterator[Question]:
    """Ask whether the instance runs, and who can work on a sleeping disk."""
    owner = view.config.owner(disk)
    if owner:
        yield node_tasks.guest_on(owner.primary_node, owner)
    yield from pairs.ask(view.config, [disk])
    yield from ask_candidates(view.config, disk)


class DiskGrow(Growing, frozen=True, kw_only=True):
    """Grow a disk.

    Attributes
    ----------
    disk
        Name or uuid.
    """

    op_id = "OP_DISK_GROW"

    disk: str

    def subject(self) -> str:
        """Return the disk's name, as it was typed."""
        return self.disk

    def target(self, view: View) -> Disk:
        """Return the disk."""
        return view.config.disk(self.disk)
