# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk snapshot``: a copy-in-time, as a disk of its own."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.errors import Exists, NotSupported, WrongState
from moorage.jobs import Ask, Lock, Planner, Question, Run, Task, View, once
from moorage.model import Claim, Config, Disk, Node
from moorage.model.objects import as_text
from moorage.ops.asking import node_tasks
from moorage.ops.disk.grow import (
    ask_growth_room,
    grow_questions,
    is_active,
)
from moorage.ops.guests.liveness import check_known
from moorage.ops.planning import placement
from moorage.ops.volumes import copies, disk_words, pools
from moorage.ops.volumes.dependents import ask_dependents, check_no_snapshot
from moorage.ops.volumes.directories import place_of
from moorage.ops.volumes.disk_access import (
    can,
    check_provider,
    check_sound,
    group_of,
    some_online,
    template,
)
from moorage.ops.volumes.disk_names import check_disk_name, check_unused, hold_name
from moorage.ops.volumes.disk_work import hold_to_work, worker_of
from moorage.ops.volumes.units import unit_of
from moorage.protocol import Listed, ListVolumes, SnapshotDisk, UnmakeDisk
from moorage.storage import Can
from moorage.storage.validation import check_name


class DiskSnapshot(Planner, frozen=True, kw_only=True):
    """Take a snapshot; the new disk belongs to nobody.

    Attributes
    ----------
    disk
        Name or uuid.
    new_name
        Name of the new disk; empty for none.
    volume
        Name of its volume, where the storage is a provider's that lists its volumes,
        for who will look for it there; without one it is made of the disk's uuid.
    ignore_capacity
        Whether it may be larger than the room that the storage has.
    """

    op_id = "OP_DISK_SNAPSHOT"

    disk: str
    new_name: str | None = None
    volume: str | None = None
    ignore_capacity: bool = False

    @once
    def listing(self, view: View) -> Ask[list[Listed]]:
        """Return the question which volumes are there already."""
        config, disk = view.config, view.config.disk(self.disk)
        owner = config.owner(disk)
        nodes = some_online(config, group_of(config, disk))
        at = owner.primary_node if owner else nodes[0].uuid
        return Ask(at, ListVolumes(places=(place_of(config, disk),)))

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance, so that neither moves meanwhile."""
        yield from hold_to_work(view, view.config.disk(self.disk))
        sole = view.config.disk(self.disk).by_name
        yield from hold_name(self.new_name, sole=sole)
        yield from pools.hold([view.config.disk(self.disk).pool])

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what room there is."""
        disk = view.config.disk(self.disk)
        yield from grow_questions(view, disk)
        yield from ask_growth_room(view, disk)
        yield from ask_dependents(view.config, [disk])
        if self.volume and template(disk).capabilities.provider:
            yield self.listing(view)
        owner = view.config.owner(disk)
        if owner:
            yield node_tasks.providers_on(owner.primary_node)

    def check(self, view: View) -> None:
        """Refuse templates and providers that take no snapshots."""
        disk = view.config.disk(self.disk)
        if self.new_name:
            name = check_disk_name(self.new_name)
            check_unused(view.config, name, sole=disk.by_name)
        check_sound(disk)
        owner = view.config.owner(disk)
        if owner:
            check_known(view, owner)
        check_takes_snapshots(view, disk, worker_of(view, disk))
        if self.volume:
            self._check_volume(view, disk, self.volume)
        if not self.ignore_capacity:
            what = f"a snapshot of disk {disk.label}"
            placement.check_rooms(view, what, self.claims(view))

    def _check_volume(self, view: View, disk: Disk, volume: str) -> None:
        """Refuse a name that some volume has, or of which nobody can tell."""
        check_name("volume", volume)
        if not template(disk).capabilities.provider:
            raise NotSupported(
                f"volumes of template '{disk.dev_type}' are called as the cluster "
                "calls them",
                disk=disk.uuid,
            )
        (listed,) = view.answer(self.listing(view)) or (Listed(),)
        if listed.problem:
            raise WrongState(
                f"nobody can tell whether there is a volume '{volume}': "
                f"{listed.problem}",
                disk=disk.uuid,
            )
        if any(as_text(one.logical_id)[-1] == volume for one in listed.volumes):
            raise Exists(f"there is a volume '{volume}' already", disk=disk.uuid)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of the copy, which may come to be as large as the disk."""
        disk = view.config.disk(self.disk)
        room = unit_of(view.config, disk), disk.size
        yield Claim(node=worker_of(view, disk).uuid, rooms=(room,))

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the copy, then let the cluster know it."""
        config, disk = view.config, view.config.disk(self.disk)
        node, active = worker_of(view, disk), is_active(view, disk)
        copy = copy_of(view, disk, node, self.volume)
        copy = replace(copy, name=self.new_name)
        if not active:
            yield from copies.attach(config, disk, node)
        yield take(config, disk, copy, node)
        if not active:
            yield from copies.detach(config, disk, node)
        yield view.record(f"record disk {copy.label}", copy)

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid of the new disk."""
        return str(results[-1][0])


def check_takes_snapshots(view: View, disk: Disk, node: Node) -> None:
    """Raise `NotSupported` unless a disk's template, and its provider on a node, do."""
    if not can(disk, Can.SNAPSHOT):
        raise NotSupported(
            f"disk {disk.label} takes no snapshots: template '{disk.dev_type}' has "
            "none",
            disk=disk.uuid,
        )
    check_no_snapshot(view, disk, "none is taken of it")
    provider = check_provider(view, disk, node)
    if provider is None:
        return
    name = provider.name
    if "snapshot" not in provider.optional:
        raise NotSupported(
            f"ExtStorage provider '{name}' takes no snapshots: it has no script "
            "'snapshot'",
            disk=disk.uuid,
        )


def copy_of(view: View, disk: Disk, node: Node, named: str | None = None) -> Disk:
    """Return the disk that a snapshot of another one is to be; it has no name.

    Parameters
    ----------
    named
        What its volume is called; None for a name of its uuid.
    """
    uuid = view.fresh()
    volume = named or snapshot_name(uuid)
    return replace(
        disk,
        uuid=uuid,
        serial_no=1,
        name=None,
        cname=volume,
        logical_id=template(disk).snapshot_id(disk, volume),
        epoch=0,
        last_node=node.uuid,
        quarantine=None,
        params=disk_words.anew(disk.params),
        adopted=False,
        unproven=False,
        ctime=view.now,
        mtime=view.now,
        tags=(),
    )


def take(config: Config, disk: Disk, copy: Disk, node: Node) -> Run:
    """Return the task that takes a snapshot; undone by removing it."""
    return Run(
        what=f"take snapshot {copy.label} of disk {disk.label} on {node.name}",
        node=node.uuid,
        do=SnapshotDisk(
            **node_tasks.of_disk(config, disk),
            name=copy.cname or snapshot_name(copy.uuid),
            to=copy.size,
        ),
        undo=UnmakeDisk(**node_tasks.of_disk(config, copy)),
        lasting=True,
    )


def snapshot_name(uuid: str) -> str:
    """Return what the volume of a snapshot disk is called, without its directory."""
    return f"{uuid}.snap"
