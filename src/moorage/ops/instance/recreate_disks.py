# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance recreate-disks``: new, empty volumes for disks whose data is lost."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Self

from msgspec.structs import replace

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, Sought, Task, View, once
from moorage.model import Claim, Disk, Instance, Node, Pair, pair_of, successor
from moorage.ops.filling.conversion_tasks import Step
from moorage.ops.guests.liveness import check_known, check_unused, seek
from moorage.ops.instance.base import (
    OnInstance,
    check_at_rest,
    check_detached,
    find_disk,
)
from moorage.ops.instance.relocation import disks_in, moved
from moorage.ops.planning import advice, disk_checks, message, placement, policy
from moorage.ops.planning.allocators import Allocator, Chooser
from moorage.ops.planning.fleet import Newcomer, on_record
from moorage.ops.volumes import copies, disk_spec, disk_words, pairs
from moorage.ops.volumes.disk_access import able, check_within
from moorage.ops.volumes.disk_words import DiskSpec
from moorage.ops.volumes.units import has_room
from moorage.storage import Reach

Given = dict[str, Any]
_CHANGES = frozenset({"size", "mode", "spindles"})


class InstanceRecreateDisks(OnInstance, Chooser, frozen=True, kw_only=True):
    """Give disks of an instance that is down new volumes, which are empty.

    A disk keeps its uuid, name and slot. Its old volume is not touched, for it may be
    there after all: it becomes a disk that belongs to nobody.

    Attributes
    ----------
    ignore_ipolicy
        Whether the policy of the node group does not count.
    ignore_capacity
        Whether they may be larger than the room that their storage has.
    disks
        Slot, name or uuid of each, or that and what is to be changed: size, mode,
        spindles. All of them when empty.
    nodes
        Where the instance and its local disks are to be: its node, and with mirrored
        disks a second one. Without it they stay where they are.
    iallocator
        Who chooses these nodes: ``hail`` is the planner, another name an allocator's
        on the master's node. Nobody without it.
    """

    op_id = "OP_INSTANCE_RECREATE_DISKS"

    disks: tuple[int | str | tuple[int | str, Given], ...] = ()
    nodes: tuple[str, ...] = ()
    ignore_ipolicy: bool = False
    ignore_capacity: bool = False
    iallocator: Allocator = None

    @once
    def chosen(self, view: View) -> list[tuple[Disk, DiskSpec]]:
        """Return the disks, each with what its new volume is to be."""
        config, instance = view.config, self.instance(view)
        if not self.disks:
            return [(one, _wanted(view, one, {})) for one in config.disks_of(instance)]
        found = []
        for one in self.disks:
            ref, changes = one if isinstance(one, tuple) else (one, {})
            disk = find_disk(config, instance, ref)
            found.append((disk, _wanted(view, disk, changes)))
        return found

    @once
    def homes(self, view: View) -> tuple[Node, Node | None]:
        """Return the instance's node, and the one of second copies."""
        config, instance = view.config, self.instance(view)
        if self.chooses(view):
            return self._placed(view)
        if not self.nodes:
            home = config.home(instance)
            return home, copies.secondary(config, instance)
        found = [config.node(name) for name in self.nodes]
        return found[0], found[1] if len(found) > 1 else None

    def chooses(self, _view: View) -> bool:
        """Whether somebody is to choose its nodes."""
        return bool(self.iallocator) and not self.nodes

    def candidates(self, view: View) -> list[Node]:
        """Return the nodes that may be its own: those named, or of its group."""
        if self.chooses(view):
            group = view.config.group_of(self.instance(view))
            return placement.hosts(view.config, [group])
        return [node for node in self.homes(view) if node]

    @once
    def _able(self, view: View) -> list[Node]:
        """Return the nodes that answer and have the storage."""
        wishes = [wanted for _, wanted in self.chosen(view)]
        found = [
            node
            for node in self.candidates(view)
            if node.uuid in placement.room(view)
            and all(disk_checks.offers(view, one, node) for one in wishes)
        ]
        if not found:
            name = self.instance(view).name
            raise WrongState(f"no node has the storage of instance {name}'s disks")
        return found

    def _newcomer(self, view: View) -> Newcomer:
        config, wishes = view.config, [wanted for _, wanted in self.chosen(view)]
        group = config.group_of(self.instance(view))
        return dataclasses.replace(
            on_record(config, self.instance(view)),
            disks=tuple((one.template, int(one.size or 0)) for one in wishes),
            units=tuple(disk_spec.unit(config, one, group) for one in wishes),
            spindles=tuple(one.spindles for one in wishes),
        )

    def _count(self, view: View) -> int:
        return 2 if any(one.mirrored for _, one in self.chosen(view)) else 1

    def allocator_request(self, view: View) -> Given:
        """Return what an allocator is asked: nodes as for a new instance."""
        able, count = self._able(view), self._count(view)
        wanted, instance = self._newcomer(view), self.instance(view)
        return message.allocate(
            view, instance, wanted, able, count=count, group=able[0].group
        )

    @once
    def _placed(self, view: View) -> tuple[Node, Node | None]:
        able, count = self._able(view), self._count(view)
        named = tuple[Node, ...]()
        if who := self.allocator(view):
            what = f"instance {self.instance(view).name}"
            named = advice.nodes(view, who, what, able, count)
        found = placement.place(
            view,
            self._newcomer(view),
            able,
            count=count,
            any_size=self.ignore_ipolicy,
            survival=not self.ignore_capacity,
            named=named,
        )
        return found[0], found[1] if count > 1 else None

    def settled(self, view: View) -> Self:
        """Return the same request, with its nodes named."""
        if not self.chooses(view):
            return self
        homes = tuple(node.name for node in self.homes(view) if node)
        return self.naming(nodes=homes, iallocator=None)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks; share the nodes."""
        yield from OnInstance.locks(self, view)
        for node in self.candidates(view):
            yield Lock("node", node.uuid, shared=True)
        yield from disk_spec.hold(view, [wanted for _, wanted in self.chosen(view)])

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and what its nodes offer."""
        yield from OnInstance.questions(self, view)
        nodes = self.candidates(view)
        for group in dict.fromkeys(node.group for node in nodes[:1]):
            for _, wanted in self.chosen(view):
                yield from disk_spec.ask(view.config, wanted, view.config.group(group))
                if has_room(wanted.template) or self.chooses(view):
                    yield from placement.ask_room(view.config, nodes)
        yield from self.ask_for_allocator(view)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest, which would use the disks."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse while it runs, and where new volumes cannot be made."""
        instance = self.instance(view)
        check_known(view, instance)
        check_unused(view, instance)
        check_at_rest(view, instance, "given new volumes")
        self._check_words(view, instance)
        home, peer = self.homes(view)
        if not home.is_host:
            raise WrongState(
                f"node {home.name} is marked offline or not vm_capable",
                hint=f"gnt-instance recreate-disks -n NODE {instance.name}",
            )
        for _, wanted in self.chosen(view):
            pair = self._pair(view, wanted, ()) if peer else None
            disk_checks.check(view, replace(wanted, name=None), home, pair)
            if pair:
                pairs.check_online(view.config, pair, f"-n {home.name}:OTHER")
        for disk in view.config.disks_of(instance):
            check_within(view.config, home, disk.group)
        self._check_policy(view, instance, home)
        if not self.ignore_capacity:
            what = f"new volumes of instance {instance.name}"
            placement.check_rooms(view, what, self._rooms(view))

    def _check_policy(self, view: View, instance: Instance, home: Node) -> None:
        """Raise `BadInput` where new sizes are not what the group's policy takes."""
        if self.ignore_ipolicy:
            return
        new = {disk.uuid: wanted for disk, wanted in self.chosen(view)}
        kept = [one for one in view.config.disks_of(instance) if one.uuid not in new]
        made = [(one.template, int(one.size or 0)) for one in new.values()]
        group = view.config.group(home.group)
        after = policy.sizes_of(view.config, instance, kept, made)
        policy.check_change(view.config, group, instance, after)

    def _check_words(self, view: View, instance: Instance) -> None:
        check_detached(view, instance)
        if self.nodes and self.iallocator:
            raise BadInput("a node and an iallocator exclude each other")
        found = [disk.uuid for disk, _ in self.chosen(view)]
        if not found:
            raise WrongState(f"instance {instance.name} has no disks")
        if len(found) != len(set(found)):
            raise BadInput("a disk is named twice")
        self._check_nodes(view, instance, found)

    def _check_nodes(self, view: View, instance: Instance, found: list[str]) -> None:
        home, peer = self.homes(view)
        moves = home.uuid != instance.primary_node
        stay = [
            disk
            for disk in view.config.disks_of(instance)
            if disk.uuid not in found and able(disk).reach is not Reach.GROUP
        ]
        if moves and stay:
            raise BadInput(
                f"disk {stay[0].label} would stay on its node, and the instance goes "
                f"to {home.name}: all local disks get new volumes, or none moves",
                hint="leave --disk out",
            )
        mirrored = [one for _, one in self.chosen(view) if one.mirrored]
        if mirrored and peer is None:
            raise BadInput("mirrored disks need a second node", hint="-n A:B")
        if peer and self.nodes and not mirrored:
            raise BadInput(
                "no disk has a second copy: a second node makes no sense",
                hint=f"-n {home.name}",
            )

    def _pair(
        self, view: View, wanted: DiskSpec, beside: tuple[Disk, ...]
    ) -> Pair | None:
        home, peer = self.homes(view)
        return pairs.wanted(view, wanted, home, peer, beside)

    @once
    def steps(self, view: View) -> list[Step]:
        """Return each disk with its new volume."""
        home, _ = self.homes(view)
        instance = self.instance(view)
        steps: list[Step] = []
        for disk, wanted in self.chosen(view):
            fresh = disk_spec.new_disk(
                view,
                wanted,
                home,
                index=instance.disks.index(disk.uuid),
                instance=instance.name,
                pair=self._pair(view, wanted, tuple(one.target for one in steps)),
            )
            target = replace(fresh, name=None, cname="")
            steps.append(Step(view, disk, target, home, rate=0))
        return steps

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of the new volumes, and their numbers if they are mirrored."""
        yield from self._rooms(view)
        yield from pairs.claims(pair_of(step.target) for step in self.steps(view))

    def _rooms(self, view: View) -> Iterator[Claim]:
        wishes = [wanted for _, wanted in self.chosen(view)]
        return disk_spec.rooms(view, wishes, *self.homes(view))

    def warnings(self, view: View) -> Iterator[str]:
        """Say that nothing is installed, and what becomes of the old volumes."""
        yield (
            "the new volumes are empty; the old ones, if they are there, are disks of "
            "nobody: gnt-disk list shows them, gnt-disk remove or forget ends them"
        )
        for _, wanted in self.chosen(view):
            yield from disk_checks.warnings(view, wanted, self.homes(view)[0])

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the new volumes; record them, and the old ones as nobody's."""
        instance, (home, _) = self.instance(view), self.homes(view)
        steps = self.steps(view)
        for step in steps:
            yield from step.make()
            yield from copies.detach(view.config, step.target, home)
        both = [step.after() for step in steps]
        kept = [
            replace(old, last_node=step.disk.last_node)
            for step, (_, old) in zip(steps, both, strict=True)
        ]
        new = (one for one, _ in both)
        rest = self._taken_along(view)
        yield view.record(f"record new volumes of {instance.name}", *new, *kept, *rest)

    def _taken_along(self, view: View) -> list[Disk | Instance]:
        """Return the instance on another node, and its other disks one epoch on."""
        instance, (home, _) = self.instance(view), self.homes(view)
        if home.uuid == instance.primary_node:
            return []
        new = {disk.uuid for disk, _ in self.chosen(view)}
        there = moved(view, instance, home, active=False)
        others = [one for one in disks_in(there) if one.uuid not in new]
        return [*others, successor(instance, view.now, primary_node=home.uuid)]


def _wanted(view: View, disk: Disk, changes: Given) -> DiskSpec:
    """Return what the new volume of a disk is to be: as it was, but for changes."""
    unknown = sorted(changes.keys() - _CHANGES)
    if unknown:
        raise BadInput(
            f"disk {disk.label} keeps its {unknown[0]}: a new volume can have another "
            "size, mode or spindles"
        )
    was = {"size": disk.size, "mode": disk.mode, "spindles": disk.spindles}
    given = {**was, **changes, "pool": disk.pool}
    return disk_words.DiskWords(
        given,
        template=disk.dev_type,
        params=disk_words.anew(disk.params),
    ).read(view.config)
