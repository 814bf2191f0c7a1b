# SPDX-License-Identifier: BSD-2-Clause
"""The tasks that bring disks to other storage, or copy them.

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

from moorage.errors import WrongState
from moorage.jobs import Run, Task, View
from moorage.model import Disk, Instance, Node
from moorage.ops.asking import node_tasks
from moorage.ops.asking.disk_presets import as_used
from moorage.ops.asking.node_tasks import OfGuest
from moorage.ops.guests.liveness import holds, runs
from moorage.ops.volumes import copies
from moorage.ops.volumes.disk_access import able
from moorage.protocol import (
    AwaitMirror,
    CopyDisk,
    DropMirror,
    KillPrograms,
    MirrorDisk,
    SettleMirror,
    SplitMirror,
    SwitchMirror,
)
from moorage.storage import Can

from .conversion import Conversion, targets


class OfMirror(OfGuest):
    """What every verb is told that mirrors a guest's disk to another volume."""

    disk: Disk
    slot: int
    to: Disk


@dataclass(frozen=True, slots=True)
class Step:
    """A disk on its way: the volumes, and where both are attached."""

    view: View
    disk: Disk
    target: Disk
    node: Node
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
        # The new volume, by the name that people know.
        asked = replace(target, name=target.name or disk.name)
        yield from node_tasks.verify(config, asked, node)
        yield from copies.create(config, target, node)
        yield from copies.attach(config, target, node)
        owner = self.owner.name if self.owner else ""
        yield node_tasks.setinfo(config, target, node, owner, label=disk.label)

    def fill(self) -> Iterator[Task]:
        """Yield what makes the volumes equal; at rest, nothing is attached then."""
        config, disk, target, node = self.view.config, self.disk, self.target, self.node
        if self.live:
            yield from self.mirror()
            return
        if not self.held:
            yield from copies.attach(config, disk, node)
        yield copy(self.view, disk, target, node, self.rate)
        yield from copies.detach(config, target, node)
        yield from copies.detach(config, disk, node)

    def mirror(self) -> Iterator[Task]:
        """Yield what mirrors a running guest's disk, until both volumes are equal."""
        guest, told = self.guest(), node_tasks.of_disk(self.view.config, self.target)
        given_up = DropMirror(**told, guest=guest.uuid, of=self.disk.uuid)
        whose = f"disk {self.disk.label} of {guest.name}"
        yield Run(
            what=f"mirror {whose} on {self.node.name}",
            node=self.node.uuid,
            do=MirrorDisk(**self._told(self.disk), rate=self.rate),
            undo=given_up,
        )
        yield Run(
            what=f"wait until {whose} is mirrored",
            node=self.node.uuid,
            do=AwaitMirror(**node_tasks.of_guest(guest), of=self.disk.uuid),
        )

    def guest(self) -> Instance:
        """Return the instance that has the disk."""
        if self.owner is None:
            raise WrongState(f"disk {self.disk.label} belongs to nobody")
        return self.owner

    def _told(self, disk: Disk) -> OfMirror:
        """Return what verbs on a mirror are told, of the disk as it is then."""
        guest = self.guest()
        return {
            **node_tasks.of_guest(guest),
            "disk": as_used(self.view.config, disk),
            "slot": guest.disks.index(disk.uuid),
            "to": self.target,
        }

    def split(self) -> Run:
        """Return the task that ends a mirror; the guest goes on with what it had."""
        return Run(
            what=f"end the mirror of disk {self.disk.label} of {self.guest().name}",
            node=self.node.uuid,
            do=SplitMirror(**self._told(self.disk)),
        )

    def switch(self) -> Iterator[Task]:
        """Yield what gives a running guest the new volume; DropMirror undoes it."""
        if self.live:
            yield Run(
                what=f"switch disk {self.disk.label} of {self.guest().name}",
                node=self.node.uuid,
                do=SwitchMirror(**self._told(self.disk)),
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
            adopted=disk.was_there,
            tags=(),
            last_node=self.node.uuid,
            epoch=epoch,
        )
        return new, old

    def settle(self, new: Disk, old: Disk) -> Iterator[Task]:
        """Yield what lets the guest, or its node, have the new volume for good."""
        config, node = self.view.config, self.node
        if self.live:
            yield Run(
                what=f"let {self.guest().name} go on with disk {new.label}",
                node=node.uuid,
                do=SettleMirror(**self._told(new)),
                tolerant=True,
                patient=True,
            )
            yield from copies.detach(config, old, node, tolerant=True)
            yield from self.follow(new)
            # Presets of the new template may be others.
            yield from copies.retuned(config, config, (new,))
        elif self.held:
            for again in copies.attach(config, new, node, held=True):
                yield replace(again, tolerant=True)

    def follow(self, new: Disk) -> Iterator[Task]:
        """Yield what lets the nodes of second copies hold the new volume as the disk.

        They held the old one by the disk's uuid, and the new one by that of its own.
        """
        config, disk, node = self.view.config, self.disk, self.node
        for peer in copies.peers(config, disk, node):
            gone = node_tasks.forget(config, disk, peer)
            what = f"let {peer.name} forget the old copy of disk {disk.label}"
            yield replace(gone, what=what)
        for peer in copies.peers(config, new, node):
            yield copies.follow(config, new, peer, held=True, tolerant=True)
            draft = node_tasks.forget(config, self.target, peer)
            what = f"let {peer.name} hold the copy as disk {disk.label} alone"
            yield replace(draft, what=what)

    def clear(self, old: Disk) -> Iterator[Task]:
        """Yield the end of the old volume; one that cannot be removed stays visible."""
        config, whose = self.view.config, f"the old volume of disk {self.disk.label}"
        hint = f"the disk has its new volume; the old one is disk {old.uuid}"
        for node in (*copies.peers(config, old, self.node), self.node):
            removed = node_tasks.remove(config, old, node, hint=hint)
            yield replace(removed, what=f"remove {whose} on {node.name}")
        yield self.view.record(f"forget {whose}", drop=(old,), final=True)


def copy(view: View, source: Disk, target: Disk, node: Node, rate: int = 0) -> Run:
    """Return the task that copies all data of one disk at rest to another one."""
    return Run(
        what=f"copy disk {source.label} on {node.name}",
        node=node.uuid,
        do=CopyDisk(**node_tasks.of_disk(view.config, source), to=target, rate=rate),
        undo=KillPrograms(objects=(target.uuid,)),
    )


def convert(view: View, all_of: Sequence[Conversion], rate: int = 0) -> Iterator[Task]:
    """Yield the tasks that convert disks of one instance, or one of nobody.

    The commit is the point of no return, for all of them together.
    """
    steps = [
        Step(
            view=view,
            disk=one.disk,
            target=target,
            node=one.worker(view),
            rate=rate,
        )
        for one, target in zip(all_of, targets(view, all_of), strict=True)
    ]
    for step in steps:
        made = f"the new volume of disk {step.disk.label}"
        for task in (*step.make(), *step.fill()):
            yield _about(task, step.target, made)
    for step in steps:
        yield from step.switch()
    pairs = [step.after() for step in steps]
    told = ", ".join(f"{new.label} in {new.dev_type}" for new, _ in pairs)
    both = (disk for pair in pairs for disk in pair)
    yield view.record(f"record disk {told}", *both, final=True)
    for step, (new, old) in zip(steps, pairs, strict=True):
        whose = f"the old volume of disk {new.label}"
        for task in step.settle(new, old):
            yield _about(task, old, whose)
    for step, (_, old) in zip(steps, pairs, strict=True):
        if not stays(old):
            yield from step.clear(old)


def stays(disk: Disk) -> bool:
    """Whether the volume that a disk leaves stays, as a disk of nobody's.

    It was there before the disk; a template that destroys nothing gives it back.
    """
    return disk.was_there and Can.CREATE in able(disk).can


def warnings(all_of: Sequence[Conversion]) -> Iterator[str]:
    """Say which old volumes stay."""
    for one in all_of:
        if stays(one.disk):
            yield (
                f"the old volume {one.disk.volume} of disk {one.disk.label} was adopted"
                ": it stays, as a disk without a name (gnt-disk list); gnt-disk remove "
                "destroys it"
            )


def _about(task: Task, volume: Disk, words: str) -> Task:
    """Return a task that calls a volume without a name what it is."""
    return replace(task, what=task.what.replace(f"disk {volume.label}", words))
