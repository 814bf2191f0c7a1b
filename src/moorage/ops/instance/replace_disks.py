# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance replace-disks``: one of the two copies of mirrored disks is made anew.

The copy that stays is the source. What is replaced is kept until the new copy is the
same, unless somebody is in a hurry (``early_release``).
"""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec.structs import replace

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Lock, Question, Run, Sought, Task, View, once
from moorage.model import Claim, Config, Disk, Instance, Node, pair_of, successor
from moorage.model.facts import UP_TO_DATE
from moorage.ops.asking.node_tasks import How, of_disk, on_disk
from moorage.ops.guests.foreign import check_taken
from moorage.ops.guests.liveness import check_unused, holds, seek
from moorage.ops.instance.base import OnInstance, find_disk, home
from moorage.ops.planning import advice, message, placement
from moorage.ops.planning.allocators import Allocator, Chooser
from moorage.ops.volumes import behind, copies, pairs
from moorage.protocol import (
    AttachDisk,
    DetachDisk,
    OnDisk,
    ReleaseCopy,
    RemoveDisk,
    RenewCopy,
    RestoreCopy,
)

PRIMARY, SECONDARY = "replace_on_primary", "replace_on_secondary"
NEW, AUTO = "replace_new_secondary", "replace_auto"
Mode = Literal[
    "replace_on_primary",
    "replace_on_secondary",
    "replace_new_secondary",
    "replace_auto",
]


class InstanceReplaceDisks(OnInstance, Chooser, frozen=True, kw_only=True):
    """Make one copy of an instance's mirrored disks anew.

    Attributes
    ----------
    mode
        Which copy: that on the primary or the secondary node, in new volumes there; or
        the second one on another node; or (``replace_auto``) the one that is bad.
    disks
        Slots, names or uuids of the disks; all of them when empty. They must be
        mirrored, and a new secondary node gets all that are.
    remote_node
        The new secondary node.
    early_release
        Whether the old copy goes before the new one is the same.
    ignore_capacity
        Whether the new node may have less room than the copies take.
    """

    op_id = "OP_INSTANCE_REPLACE_DISKS"

    mode: Mode = "replace_auto"
    disks: list[int | str] = []
    remote_node: str | None = None
    iallocator: Allocator = None
    early_release: bool = False
    ignore_capacity: bool = False

    @once
    def wanted(self, view: View) -> list[Disk]:
        """Return the disks."""
        config, instance = view.config, self.instance(view)
        found = [find_disk(config, instance, one) for one in self.disks]
        found = found or config.disks_of(instance)
        mirrored = [one for one in found if pairs.is_mirrored(one.dev_type)]
        others = ", ".join(one.label for one in found if one not in mirrored)
        if others or not mirrored:
            told = f"instance {instance.name} has no mirrored disks"
            if others:
                told = f"disk {others} of instance {instance.name} is not mirrored"
            raise NotSupported(
                f"{told}: there is no copy to replace",
                hint=self._naming(view) if mirrored and not self.disks else "",
                instance=instance.name,
            )
        return mirrored

    def _naming(self, view: View) -> str:
        """Return what names the mirrored disks of an instance that has others, too."""
        instance = self.instance(view)
        slots = ",".join(map(str, mirrored_slots(view.config, instance)))
        return f"add --disks={slots}, which names the mirrored ones"

    @once
    def _secondary(self, view: View) -> Node:
        """Return the node that keeps the second copies now."""
        instance = self.instance(view)
        found = copies.secondary(view.config, instance)
        if found is None:
            raise NotSupported(f"instance {instance.name} has no secondary node")
        return found

    @once
    def place(self, view: View) -> Node:
        """Return the node whose copy is made anew; of a new secondary, that node."""
        primary = view.config.home(self.instance(view))
        if self.mode == PRIMARY:
            return primary
        if self.mode == SECONDARY:
            return self._secondary(view)
        if self.mode == NEW:
            return self._new(view)
        return self._bad(view, primary, self._secondary(view))

    @once
    def _new(self, view: View) -> Node:
        if self.remote_node:
            return view.config.node(self.remote_node)
        instance, hosts = self.instance(view), self.hosts(view)
        if who := self.allocator(view):
            what = f"the copies of instance {instance.name}"
            hosts = [*advice.nodes(view, who, what, hosts, 1)]
        return placement.new_secondary(view, instance, hosts)

    def chooses(self, _view: View) -> bool:
        """Whether a new secondary node is wanted, and nobody named it."""
        return self.mode == NEW and not self.remote_node

    def allocator_request(self, view: View) -> dict[str, Any]:
        """Return what an allocator is asked."""
        return message.relocate(view, self.instance(view), self._secondary(view))

    def _bad(self, view: View, *nodes: Node) -> Node:
        """Return the node whose copy of some disk is not good."""
        found = [one for one in nodes if self._is_bad(view, one)]
        if len(found) == 1:
            return found[0]
        name = self.instance(view).name
        raise WrongState(
            f"both copies of disks of instance {name} are bad: there is no source"
            if found
            else f"the copies of all disks of instance {name} are good, or cannot be "
            "seen while the disks are not active",
            hint="-s makes the second copies anew, -p those on the primary node",
        )

    def _is_bad(self, view: View, node: Node) -> bool:
        for disk in self.wanted(view):
            found = pairs.state(view, disk, node)
            if found and found.disk != UP_TO_DATE and not found.copying:
                return True
        return False

    def hosts(self, view: View) -> list[Node]:
        """Return the nodes that may become the secondary one."""
        config, instance = view.config, self.instance(view)
        primary = config.home(instance)
        hosts = placement.hosts(config, [config.group(primary.group)])
        return [n for n in hosts if n not in (primary, self._secondary(view))]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks; share the nodes that may be concerned."""
        yield from OnInstance.locks(self, view)
        if self.mode == NEW:
            nodes = [self._new(view)] if self.remote_node else self.hosts(view)
            for node in nodes:
                yield Lock("node", node.uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask how the copies are, and what room the others have."""
        yield from OnInstance.questions(self, view)
        yield from pairs.ask(view.config, self.wanted(view))
        if self.mode == NEW:
            group = view.config.group_of(self.instance(view))
            yield from placement.ask_room(view.config, view.config.nodes_in(group))
            yield from self.ask_for_allocator(view)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest, which would use the disks."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse where no good copy stays, or the new node cannot take one."""
        self._check_words()
        OnInstance.check(self, view)
        check_unused(view, self.instance(view))
        check_taken(view, self.instance(view))
        primary = home(view.config, self.instance(view))
        secondary, place = self._secondary(view), self.place(view)
        if self.mode == NEW:
            self._check_new(view, place)
        elif secondary.offline:
            raise WrongState(
                f"node {secondary.name} is marked offline: its copies cannot be made "
                "anew, nor be a source",
                hint=f"gnt-instance replace-disks -I hail {self.instance(view).name}",
            )
        source = secondary if place == primary else primary
        if holds(view, self.instance(view)):
            self._check_source(view, source, primary)
        else:
            behind.check_source(
                view, self.wanted(view), source, self.instance(view).name
            )

    def _check_source(self, view: View, source: Node, primary: Node) -> None:
        """Raise `WrongState` unless the copy that is to be copied is a good one."""
        disks = self.wanted(view)
        if source == primary:
            pairs.check_good(view, disks, source)
        else:
            behind.check_current(view, disks, source, primary, active=True, hint="")

    def _check_words(self) -> None:
        chooses = bool(self.remote_node) + bool(self.iallocator)
        if self.mode == NEW and chooses != 1:
            raise BadInput(
                "a new secondary node is named, or chosen by the allocator",
                hint="-n NODE, or -I hail",
            )
        if self.mode != NEW and chooses:
            raise BadInput("a node is named for a new secondary node only")

    def _check_new(self, view: View, node: Node) -> None:
        instance = self.instance(view)
        if len(self.wanted(view)) < len(mirrored_slots(view.config, instance)):
            raise BadInput(
                "a new secondary node gets the copies of all mirrored disks",
                hint=self._naming(view),
            )
        if node == self._secondary(view) or node.uuid == instance.primary_node:
            raise WrongState(
                f"node {node.name} keeps a copy of instance {instance.name}'s disks "
                "already",
                hint="-s makes the copies there anew",
            )
        pairs.check_apart(view.config, view.config.home(instance), node)
        placement.check_takes(node)
        view.answer(placement.room_on(view.config, node))
        if not self.ignore_capacity:
            what = f"the copies of instance {instance.name}'s disks"
            placement.check_rooms(view, what, [self._room(view, node)])

    def _room(self, view: View, node: Node) -> Claim:
        disks = self.wanted(view)
        return copies.room(view.config, disks, disks[0].dev_type, node)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room and the numbers of the new copies."""
        node = self.place(view)
        yield self._room(view, node)
        if self.mode == NEW:
            found = (pair_of(new) for _, new in self._repaired(view))
            minors = tuple(pair.minor(node.uuid) for pair in found if pair)
            yield Claim(node=node.uuid, minors=minors)

    def warnings(self, view: View) -> Iterator[str]:
        """Say which copies stay where they are, for their node is off."""
        if self.mode == NEW:
            for disk in self.wanted(view):
                yield from copies.left_behind(view.config, disk)

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the copies, wait until they are the same, and remove the old ones."""
        if self.mode == NEW:
            yield from self._moved(view)
        else:
            yield from self._renewed(view)

    def _renewed(self, view: View) -> Iterator[Task]:
        """Yield new volumes on a node, in the place of its old ones."""
        config, place, disks = view.config, self.place(view), self.wanted(view)
        active = holds(view, self.instance(view))
        for disk in disks:
            source = next(iter(copies.others(config, disk, place)))
            if not active:
                yield copies.follow(config, disk, source)
                # Where its volumes are lost, it cannot; what takes it back is for both.
                yield copies.follow(config, disk, place, tolerant=True)
            # What an earlier job left must not come back.
            left = "remove what is left of older copies of"
            yield on_disk(config, disk, place, left, ReleaseCopy)
            yield Run(
                what=f"make the copy of disk {disk.label} on {place.name} anew",
                node=place.uuid,
                do=RenewCopy(**of_disk(config, disk)),
                undo=RestoreCopy(**of_disk(config, disk)),
                lasting=True,
            )
        gone = [_dropped(config, disk, place, ReleaseCopy) for disk in disks]
        yield from self._ended(view, disks, gone)

    def _ended(self, view: View, disks: list[Disk], gone: list[Run]) -> Iterator[Task]:
        """Yield the wait for the new copies and the end of the old ones."""
        config, instance = view.config, self.instance(view)
        primary, firm = config.home(instance), not self.early_release
        told = (copies.wait(config, disk, primary, firm=firm) for disk in disks)
        waits = [one for each in told for one in each]
        yield from (*gone, *waits) if self.early_release else (*waits, *gone)
        for disk in () if holds(view, instance) else disks:
            yield from copies.detach(config, disk, primary, tolerant=True)

    def _repaired(self, view: View) -> list[tuple[Disk, Disk]]:
        """Return each disk as it is, and with its second copy on the new node."""
        config, made = view.config, list[tuple[Disk, Disk]]()
        primary = config.home(self.instance(view))
        for disk in self.wanted(view):
            beside = [new for _, new in made]
            pair = pairs.moved(view, disk, primary, self.place(view), beside)
            new = successor(
                disk,
                view.now,
                logical_id=pair.logical_id,
                nodes=pair.nodes,
                children=tuple(replace(c, nodes=pair.nodes) for c in disk.children),
                behind=None,
            )
            made.append((disk, new))
        return made

    def _moved(self, view: View) -> Iterator[Task]:
        """Yield second copies on another node; the first ones turn to them."""
        config, instance, to = view.config, self.instance(view), self.place(view)
        active, found = holds(view, instance), self._repaired(view)
        for _, new in found:
            yield copies.second(config, new, to)
        what = f"record {to.name} as the secondary node of {instance.name}"
        yield view.record(what, *(new for _, new in found))
        for old, new in found:
            yield from self._turned(view, old, new, active=active)
        left = self._secondary(view)
        olds = () if left.offline else (old for old, _ in found)
        gone = [_dropped(config, old, left, RemoveDisk) for old in olds]
        yield from self._ended(view, [new for _, new in found], gone)

    def _turned(
        self, view: View, old: Disk, new: Disk, *, active: bool
    ) -> Iterator[Task]:
        """Yield what lets a first copy be followed by the new second one."""
        config, to = view.config, self.place(view)
        primary = config.home(self.instance(view))
        secondary = self._secondary(view)
        if active and not secondary.offline:
            what, verbs = "detach the old copy of", (DetachDisk, AttachDisk)
            yield on_disk(config, old, secondary, what, *verbs, tolerant=True)
        yield copies.follow(config, new, to)
        if not active:
            yield copies.follow(config, new, primary)
            return
        yield Run(
            what=f"let disk {old.label} on {primary.name} be copied to {to.name}",
            node=primary.uuid,
            do=AttachDisk(**of_disk(config, new)),
            undo=AttachDisk(**of_disk(config, old)),
        )


def _dropped(config: Config, disk: Disk, node: Node, verb: type[OnDisk[Any]]) -> Run:
    how = How(tolerant=True, final=True)
    return on_disk(config, disk, node, "remove the old copy of", verb, **how)


def mirrored_slots(config: Config, instance: Instance) -> list[int]:
    """Return the slots of an instance's mirrored disks."""
    disks = enumerate(config.disks_of(instance))
    return [at for at, disk in disks if pairs.is_mirrored(disk.dev_type)]
