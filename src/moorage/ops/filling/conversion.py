# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for a disk: which, on which node, and what refuses it."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import field
from msgspec.structs import replace

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Lock, Planner, Question, View, once
from moorage.model import Claim, Config, Disk, Instance, Node, NodeGroup, Pair, pair_of
from moorage.model.kinds import Access, Rate
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import rescue
from moorage.ops.guests.foreign import check_ours
from moorage.ops.guests.liveness import check_known, runs
from moorage.ops.planning import disk_checks, placement, policy
from moorage.ops.volumes import copies, disk_spec, disk_words, pairs
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_access import (
    ask_candidates,
    ask_reach,
    check_reach,
    check_sound,
    group_of,
    worker,
)
from moorage.ops.volumes.disk_names import check_sole
from moorage.ops.volumes.disk_words import DiskSpec
from moorage.ops.volumes.disk_work import hold_to_work
from moorage.ops.volumes.units import has_room, unit_of


@dataclass(frozen=True, slots=True)
class Conversion:
    """One disk, and the storage that it is to have.

    Attributes
    ----------
    node
        Where somebody wants the work to be done; empty for wherever it can be.
    second
        The node that is to keep the second copy of a mirrored disk; empty for the
        instance's second node.
    """

    disk: Disk
    wanted: DiskSpec
    node: str = ""
    second: str = ""

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, its instance and an adopted device; share the nodes."""
        yield from hold_to_work(view, self.disk)
        yield from copies.hold(view.config, [self.disk])
        yield from disk_spec.hold(view, [self.wanted], owned=False)
        for name in filter(None, (self.node, self.second)):
            yield Lock("node", view.config.node(name).uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what the new storage offers."""
        config, disk = view.config, self.disk
        owner = config.owner(disk)
        if owner:
            yield node_tasks.guest_on(owner.primary_node, owner)
        yield from ask_candidates(config, disk)
        yield from ask_dependents(config, [disk])
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

    @once
    def worker(self, view: View) -> Node:
        """Return the node that has both volumes; raise `WrongState` if none can."""
        config, owner = view.config, view.config.owner(self.disk)
        if owner is None and not self.node:
            return worker(view, self.disk)
        node = config.node(self.node or (owner.primary_node if owner else ""))
        if owner and owner.primary_node != node.uuid:
            home = config.home(owner).name
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

    def peer(self, view: View) -> Node | None:
        """Return the node that is to keep the second copy of a mirrored disk."""
        owner = view.config.owner(self.disk)
        if self.second:
            return view.config.node(self.second)
        return copies.secondary(view.config, owner) if owner else None

    def pair(self, view: View, beside: Iterable[Disk] = ()) -> Pair | None:
        """Return who keeps the copies of the new volume; None if there is one alone."""
        node, peer = self.worker(view), self.peer(view)
        return pairs.wanted(view, self.wanted, node, peer, beside)

    def target(self, view: View, beside: Iterable[Disk] = ()) -> Disk:
        """Return the new volume, `beside` others, as a disk that has no name."""
        owner = view.config.owner(self.disk)
        made = disk_spec.new_disk(
            view,
            self.wanted,
            self.worker(view),
            index=owner.disks.index(self.disk.uuid) if owner else 0,
            instance=owner.name if owner else "",
            pair=self.pair(view, beside),
        )
        return replace(made, name=None, cname="", mode=self.disk.mode)

    def is_there(self, view: View) -> bool:
        """Whether the disk is in such storage already, with the same parameters.

        One that shall be in a storage pool is there if it is in that pool.
        """
        config, target = view.config, self.target(view)
        return (
            target.pool in (None, self.disk.pool)
            and target.dev_type == self.disk.dev_type
            and unit_of(config, target) == unit_of(config, self.disk)
            and target.params == self.disk.params
            and not self.wanted.adopt
        )

    def check(self, view: View) -> None:
        """Raise `Refused` unless the disk can be copied to such storage."""
        owner = view.config.owner(self.disk)
        self.check_copy(view)
        check_no_dependents(view, [self.disk])
        if owner:
            self._check_writable(view, owner)

    def check_copy(self, view: View) -> None:
        """Raise `Refused` unless there can be a copy of the disk in such storage."""
        disk, owner = self.disk, view.config.owner(self.disk)
        check_sound(disk)
        node = self.worker(view)
        if owner:
            check_known(view, owner)
            check_ours(view, owner, "a copy of its disks, or other storage,")
        elif self.node:
            check_reach(view, disk, node)
        pair = self.pair(view)
        disk_checks.check(view, self.wanted, node, pair)
        if pair:
            pairs.check_online(view.config, pair)
        target = self.target(view)
        name = self.wanted.name or disk.name
        if name and not self.wanted.name:
            check_sole(view.config, name, sole=target.by_name, disk=disk)
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


class ToStorage(Planner, frozen=True, kw_only=True):
    """An operation that copies a disk's data to storage that somebody names.

    Attributes
    ----------
    disk
        Name or uuid.
    provider
        The ExtStorage provider of a disk of template ``ext``.
    access
        ``userspace`` or ``kernelspace``: how QEMU reaches it.
    disk_template
        The new one; the disk's own, where none is named.
    pool
        The storage pool that the data is to be in.
    params
        Parameters of the template or the provider.
    node
        Where the work is done, and where the data of a template stay that is local to
        a node. A disk that an instance has is where the instance is. Behind a colon,
        the second node of a mirrored disk: ``node1:node2``, or ``:node2``.
    rate
        How much is copied in a second at most; 0 for no limit.
    force_params
        Accept parameters that the provider does not list.
    ignore_capacity
        Whether it may be larger than the room that its storage has.
    """

    disk: str
    disk_template: str | None = None
    pool: str | None = None
    provider: str | None = None
    access: Access | None = None
    params: dict[str, Any] = field(default_factory=dict)
    node: str | None = None
    rate: Rate = 0
    force_params: bool = False
    ignore_capacity: bool = False

    @property
    def named_params(self) -> dict[str, Any]:
        """The parameters; two of them may be given as fields."""
        return disk_words.named_params(
            self.params, provider=self.provider, access=self.access
        )

    @abstractmethod
    def conversion(self, view: View) -> Conversion:
        """Return what is wanted."""

    def converted(self, disk: Disk, wanted: DiskSpec) -> Conversion:
        """Return what is wanted, on the nodes that were named."""
        disk_checks.check_new(wanted)
        node, _, second = (self.node or "").partition(":")
        return Conversion(disk, wanted, node, second)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, its instance and a new name; share nodes that may work."""
        return self.conversion(view).locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what the new storage offers."""
        return self.conversion(view).questions(view)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of the new volume."""
        return claims(view, [self.conversion(view)])

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes of the group will not reach it."""
        found = self.conversion(view)
        return disk_checks.warnings(view, found.wanted, found.worker(view))


def check_room(view: View, all_of: Sequence[Conversion]) -> None:
    """Raise `NoCapacity` unless there is room for the new volumes, together."""
    told = ", ".join(one.disk.label for one in all_of)
    placement.check_rooms(view, f"the data of disk {told}", _rooms(view, all_of))


def claims(view: View, all_of: Sequence[Conversion]) -> Iterator[Claim]:
    """Claim the room of the new volumes, and their numbers if they are mirrored."""
    yield from _rooms(view, all_of)
    yield from pairs.claims(pair_of(one) for one in targets(view, all_of))


def _rooms(view: View, all_of: Sequence[Conversion]) -> Iterator[Claim]:
    """Yield the room of the new volumes, on one node or on a pair of nodes."""
    wishes = [one.wanted for one in all_of]
    for first in all_of[:1]:
        yield from disk_spec.rooms(view, wishes, first.worker(view), first.peer(view))


def targets(view: View, all_of: Sequence[Conversion]) -> list[Disk]:
    """Return the new volumes; each knows of the numbers of those before it."""
    found: list[Disk] = []
    for one in all_of:
        found.append(one.target(view, found))
    return found


def check_policy(view: View, owner: Instance, all_of: Sequence[Conversion]) -> None:
    """Raise `BadInput` if the policy of an instance's group has no such disks."""
    config = view.config
    group = config.group_of(owner)
    new = {one.disk.uuid: one.wanted.template for one in all_of}
    after = [
        replace(disk, dev_type=new.get(disk.uuid, disk.dev_type))
        for disk in config.disks_of(owner)
    ]
    policy.check_change(config, group, owner, policy.sizes_of(config, owner, after))
