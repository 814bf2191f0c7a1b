# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for disks: the new volume is filled, recorded, and the old one removed.

A disk keeps its uuid, name, slot and tags; its record gets the new volume in one
commit, with the next epoch. Until then the new volume is a disk that the journal knows,
afterwards the old one is a disk that belongs to nobody, and is removed. So whatever
breaks, the disk has the old volume or the new one, and no volume is without a record.

While the guest runs it writes to both. It stands still from the moment when it is
switched until the commit: it never writes to a volume that is not on record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Lock, Question, Run, Task, View, commit
from moorage.model import Change, Claim, Config, Disk, Instance, Node, NodeGroup
from moorage.protocol import (
    CopyDisk,
    DropMirror,
    KillPrograms,
    MirrorDisk,
    SettleMirror,
    SwitchMirror,
)
from moorage.storage.templates.ext import metadata, plain

from . import copies, disk_spec, node_tasks, placement, policy
from .disk.grow import grow_locks
from .disk_access import (
    ask_candidates,
    ask_reach,
    check_reach,
    group_of,
    worker,
)
from .disk_spec import DiskSpec
from .liveness import check_known, holds, runs
from .quarantine import check_sound
from .silence import rescue
from .storage.units import Named, has_room, unit_of

MOST_RATE = 1 << 20
"""MiB a second: more is no limit."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """One disk, and the storage that it is to have.

    Attributes
    ----------
    node
        Where somebody wants the work to be done; empty for wherever it can be.
    """

    disk: Disk
    wanted: DiskSpec
    node: str = ""

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, its instance and an adopted device; share the nodes."""
        yield from grow_locks(view, self.disk)
        yield from copies.hold(view.config, [self.disk])
        yield from disk_spec.hold([self.wanted])
        if self.node:
            yield Lock("node", view.config.node(self.node).uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what the new storage offers."""
        config, disk = view.config, self.disk
        owner = config.owner(disk)
        if owner:
            yield node_tasks.guest_on(owner.primary_node, owner)
        yield from ask_candidates(config, disk)
        if self.node:
            yield from ask_reach(config, [disk], config.node(self.node))
        yield from disk_spec.ask(config, self.wanted, self._group(config))
        if has_room(self.wanted.template):
            nodes = config.nodes_in(self._group(config))
            yield from placement.ask_room(config, [n for n in nodes if not n.offline])

    def _group(self, config: Config) -> NodeGroup:
        if self.node:
            return config.group(config.node(self.node).group)
        return group_of(config, self.disk)

    def worker(self, view: View) -> Node:
        """Return the node that has both volumes for the time of the work.

        Raises
        ------
        WrongState
            If there is none.
        """
        config, owner = view.config, view.config.owner(self.disk)
        if owner is None and not self.node:
            return worker(view, self.disk)
        node = config.node(self.node or (owner.primary_node if owner else ""))
        if owner and owner.primary_node != node.uuid:
            home = config.node(owner.primary_node).name
            raise WrongState(
                f"instance {owner.name} has disk {self.disk.label} on node {home}: the "
                f"work is done there, not on {node.name}",
                hint=f"leave -n out; or first: gnt-disk detach {self.disk.label}",
            )
        if node.offline:
            raise WrongState(
                f"node {node.name} is marked offline",
                hint=rescue(config, owner) if owner else "",
            )
        return node

    def target(self, view: View) -> Disk:
        """Return the new volume, as a disk that has no name."""
        owner = view.config.owner(self.disk)
        made = disk_spec.bear(
            view,
            self.wanted,
            self.worker(view),
            index=owner.disks.index(self.disk.uuid) if owner else 0,
            instance=owner.name if owner else "",
        )
        return replace(made, name=None, cname="", mode=self.disk.mode)

    def is_there(self, view: View) -> bool:
        """Whether the disk is in such storage already, with the same parameters."""
        cluster, target = view.config.cluster, self.target(view)
        return (
            unit_of(cluster, target) == unit_of(cluster, self.disk)
            and target.params == self.disk.params
            and not self.wanted.adopt
        )

    def check(self, view: View) -> None:
        """Raise `Refused` unless the disk can be copied to such storage."""
        owner = view.config.owner(self.disk)
        self.check_copy(view)
        if owner:
            self._check_writable(view, owner)

    def check_copy(self, view: View) -> None:
        """Raise `Refused` unless there can be a copy of the disk in such storage."""
        disk, owner = self.disk, view.config.owner(self.disk)
        check_sound(disk)
        node = self.worker(view)
        if owner:
            check_known(view, owner)
        elif self.node:
            check_reach(view, disk, node)
        disk_spec.check(view, self.wanted, node)
        target = self.target(view)
        if target.size < disk.size:
            raise BadInput(
                f"the device has {target.size} MiB, and disk {disk.label} {disk.size} "
                "MiB: it would not hold the data"
            )

    def _check_writable(self, view: View, owner: Instance) -> None:
        if self.disk.mode == "ro" and runs(view, owner):
            raise NotSupported(
                f"disk {self.disk.label} is read-only, and {owner.name} runs: a "
                "guest's read-only disk gets other storage only while it is down",
                hint=f"gnt-instance shutdown {owner.name}",
            )

    def made(self, view: View) -> tuple[tuple[Named, int], ...]:
        """Return what room it takes; an adopted device is there."""
        if self.wanted.adopt:
            return ()
        return (disk_spec.room(view, self.wanted, self.worker(view)),)


def check_room(view: View, all_of: Sequence[Conversion]) -> None:
    """Raise `NoCapacity` unless there is room for the new volumes, together."""
    told = ", ".join(one.disk.label for one in all_of)
    for claim in claims(view, all_of):
        node = view.config.node(claim.node)
        placement.check_room_for(view, f"the data of disk {told}", node, claim.rooms)


def claims(view: View, all_of: Sequence[Conversion]) -> Iterator[Claim]:
    """Claim the room of the new volumes, which are all on one node."""
    made = tuple(made for one in all_of for made in one.made(view))
    if made:
        yield Claim(node=all_of[0].worker(view).uuid, rooms=made)


def check_rate(rate: int) -> None:
    """Raise `BadInput` unless it is a limit in MiB a second, or 0 for none."""
    if not 0 <= rate <= MOST_RATE:
        raise BadInput(f"a rate is 1 to {MOST_RATE} MiB a second, not {rate}")


def check_policy(view: View, owner: Instance, all_of: Sequence[Conversion]) -> None:
    """Raise `BadInput` if the policy of an instance's group has no such disks."""
    config = view.config
    group = config.group(config.node(owner.primary_node).group)
    new = {one.disk.uuid: one.wanted.template for one in all_of}
    after = [
        replace(disk, dev_type=new.get(disk.uuid, disk.dev_type))
        for disk in config.disks_of(owner)
    ]
    sizes = policy.sizes_of(config, owner), policy.sizes_of(config, owner, after)
    policy.check_change(config, group, owner.name, *sizes)


# -- what is done ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A disk on its way: the volumes, and where both are attached."""

    view: View
    disk: Disk
    target: Disk
    node: Node
    adopted: bool
    rate: int

    @property
    def owner(self) -> Instance | None:
        """The instance that has the disk."""
        return self.view.config.owner(self.disk)

    @property
    def live(self) -> bool:
        """Whether a guest writes to the disk."""
        return self.owner is not None and runs(self.view, self.owner)

    @property
    def held(self) -> bool:
        """Whether the node has the disk attached, and keeps it so."""
        return self.owner is not None and holds(self.view, self.owner)

    def make(self) -> Iterator[Task]:
        """Yield what makes the new volume, and attaches it."""
        config, disk, target, node = self.view.config, self.disk, self.target, self.node
        if not self.adopted:
            yield from copies.create(config, target, node)
        yield from copies.attach(config, target, node)
        note = metadata(self.owner.name) if self.owner else plain(f"disk+{disk.label}")
        yield node_tasks.setinfo(config, target, node, note)

    def fill(self) -> Iterator[Task]:
        """Yield what makes the volumes equal; at rest, nothing is attached then."""
        config, disk, target, node = self.view.config, self.disk, self.target, self.node
        if self.live:
            yield self.mirror()
            return
        if not self.held:
            yield from copies.attach(config, disk, node)
        yield copy(self.view, disk, target, node, self.rate)
        yield from copies.detach(config, target, node)
        yield from copies.detach(config, disk, node)

    def mirror(self) -> Run:
        """Return the task that mirrors a running guest's disk until both are equal."""
        guest, told = self.guest(), node_tasks.of_disk(self.view.config, self.target)
        given_up = DropMirror(**told, guest=guest.uuid, of=self.disk.uuid)
        return Run(
            what=f"mirror disk {self.disk.label} of {guest.name} on {self.node.name}",
            node=self.node.uuid,
            do=MirrorDisk(
                **node_tasks.of_guest(guest),
                disk=self.disk,
                slot=guest.disks.index(self.disk.uuid),
                to=self.target,
                rate=self.rate,
            ),
            undo=given_up,
        )

    def guest(self) -> Instance:
        """Return the instance that has the disk."""
        if self.owner is None:
            raise WrongState(f"disk {self.disk.label} belongs to nobody")
        return self.owner

    def switch(self) -> Iterator[Task]:
        """Yield what gives a running guest the new volume; DropMirror undoes it."""
        if self.live:
            guest = self.guest()
            yield Run(
                what=f"switch disk {self.disk.label} of {guest.name}",
                node=self.node.uuid,
                do=SwitchMirror(
                    **node_tasks.of_guest(guest),
                    disk=self.disk,
                    slot=guest.disks.index(self.disk.uuid),
                    to=self.target,
                ),
            )

    def after(self) -> tuple[Disk, Disk]:
        """Return the disk with its new volume, and the old volume as nobody's disk."""
        view, disk = self.view, self.disk
        epoch = disk.epoch + 1
        new = replace(
            self.target,
            uuid=disk.uuid,
            serial_no=disk.serial_no + 1,
            ctime=disk.ctime,
            mtime=view.now,
            name=disk.name,
            tags=disk.tags,
            epoch=epoch,
        )
        old = replace(
            disk,
            uuid=view.fresh(),
            serial_no=1,
            ctime=view.now,
            mtime=view.now,
            name=None,
            cname=disk.known_as,
            tags=(),
            last_node=self.node.uuid,
            epoch=epoch,
        )
        return new, old

    def settle(self, new: Disk, old: Disk) -> Iterator[Task]:
        """Yield what lets the guest, or its node, have the new volume for good."""
        config, node = self.view.config, self.node
        if self.live:
            guest = self.guest()
            yield Run(
                what=f"let {guest.name} go on with disk {new.label}",
                node=node.uuid,
                do=SettleMirror(
                    **node_tasks.of_guest(guest),
                    disk=new,
                    slot=guest.disks.index(new.uuid),
                    to=self.target,
                ),
                tolerant=True,
                patient=True,
            )
            yield from copies.detach(config, old, node, tolerant=True)
        elif self.held:
            for again in copies.attach(config, new, node, held=True):
                yield replace(again, tolerant=True)

    def clear(self, old: Disk) -> Iterator[Task]:
        """Yield the end of the old volume; one that cannot be removed stays visible."""
        config, whose = self.view.config, f"the old volume of disk {self.disk.label}"
        hint = f"the disk has its new volume; the old one is disk {old.uuid}"
        for removed in copies.remove(config, old, self.node, hint=hint):
            where = config.node(removed.node).name
            yield replace(removed, what=f"remove {whose} on {where}")
        what = f"forget {whose}"
        yield commit(what, Change((), (old,)), {}, final=True)


def copy(view: View, source: Disk, target: Disk, node: Node, rate: int = 0) -> Run:
    """Return the task that copies all data of one disk at rest to another one."""
    return Run(
        what=f"copy disk {source.label} on {node.name}",
        node=node.uuid,
        do=CopyDisk(**node_tasks.of_disk(view.config, source), to=target, rate=rate),
        undo=KillPrograms(objects=(target.uuid,)),
    )


def tasks(view: View, all_of: Sequence[Conversion], rate: int = 0) -> Iterator[Task]:
    """Yield the tasks that convert disks of one instance, or one of nobody.

    The commit is the point of no return, for all of them together.
    """
    steps = [
        Step(
            view=view,
            disk=one.disk,
            target=one.target(view),
            node=one.worker(view),
            adopted=one.wanted.adopt is not None,
            rate=rate,
        )
        for one in all_of
    ]
    for step in steps:
        yield from step.make()
        yield from step.fill()
    for step in steps:
        yield from step.switch()
    pairs = [step.after() for step in steps]
    change = Change(tuple(disk for pair in pairs for disk in pair))
    told = ", ".join(f"{new.label} in {new.dev_type}" for new, _ in pairs)
    what = f"record disk {told}"
    yield commit(what, change, view.config.before(change), final=True)
    for step, pair in zip(steps, pairs, strict=True):
        yield from step.settle(*pair)
    for step, (_, old) in zip(steps, pairs, strict=True):
        yield from step.clear(old)
