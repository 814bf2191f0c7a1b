# SPDX-License-Identifier: BSD-2-Clause
"""Disks that come to an instance, go, or change: ``gnt-instance modify --disk``.

Every disk that a request names is looked up once, in the state before the request.
What is done hot is done hot: on a running instance a disk is plugged or unplugged at
once, with or without ``--hotplug``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from msgspec.structs import replace as with_fields

from moorage.errors import BadInput, Conflict, WrongState
from moorage.jobs import Commit, Lock, Question, Run, Task, View
from moorage.jobs.results import Changed
from moorage.model import Claim, Disk, Instance, Node, Pair, apply, successor
from moorage.model import change as changes
from moorage.ops.asking import node_tasks
from moorage.ops.disk.attach import attach_tasks, check_free, check_index, inserted
from moorage.ops.disk.detach import detach_tasks
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import check_known, runs
from moorage.ops.instance.base import OnInstance, find_disk
from moorage.ops.instance.converting import ConvertingDisks
from moorage.ops.instance.disk_mods import (
    Mod,
    completed,
    modified,
    parameters,
    parse_mods,
)
from moorage.ops.planning import disk_checks, placement
from moorage.ops.volumes import copies, disk_spec, identity, pairs, pools
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_access import (
    ask_candidates,
    ask_reach,
    candidates,
    check_own,
    elsewhere,
    remover,
)
from moorage.ops.volumes.disk_names import hold_names, sought
from moorage.ops.volumes.disk_params import ask_listed, check_listed, verified
from moorage.ops.volumes.units import has_room
from moorage.protocol import VerifyDisk


class ChangingDisks(ConvertingDisks, frozen=True, kw_only=True):
    """An operation that can change an instance's disks one by one.

    Attributes
    ----------
    disks
        Changes: action, disk (slot, name or uuid), parameters.
    keep_disks
        Forget removed disks without destroying their data.
    """

    keep_disks: bool = False

    def mods(self, view: View) -> list[tuple[Mod, Disk | None]]:
        """Return each change with the disk it is about, looked up once."""
        instance = self.instance(view)
        shared = disk_spec.shared_by(view.config.disks_of(instance))
        return [
            (completed(mod, self.disk_template, shared), _meant(view, instance, mod))
            for mod in parse_mods(self.disks)
        ]

    def takes_disks(self, view: View) -> bool:
        """Whether volumes are let go of: disks are converted, removed or detached."""
        gone = ("remove", "detach")
        return self.converts or any(mod.action in gone for mod, _ in self.mods(view))

    def _wishes(self, view: View) -> list[disk_spec.DiskSpec]:
        return [self._wish(view, mod) for mod, disk in self.mods(view) if disk is None]

    def _wish(self, view: View, mod: Mod) -> disk_spec.DiskSpec:
        return self.completed(disk_spec.wish(view.config, mod.params))

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance, its disks, and those that it gets."""
        yield from ConvertingDisks.locks(self, view)
        for mod, disk in self.mods(view):
            if disk:
                yield Lock("disk", disk.uuid)
                yield from pools.hold([disk.pool])
            if disk and "name" in mod.params:
                yield from hold_names(disk.name, mod.params["name"])
        for disk in self._elsewhere(view):
            for node in candidates(view.config, disk):
                yield Lock("node", node.uuid, shared=True)
        yield from disk_spec.hold(self._wishes(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, what its node reaches, and what new disks need."""
        yield from ConvertingDisks.questions(self, view)
        node = view.config.home(self.instance(view))
        group = view.config.group(node.group)
        for wanted in self._wishes(view):
            yield from disk_spec.ask(view.config, wanted, group)
            if has_room(wanted.template):
                yield placement.room_on(view.config, node)
        peer = self._peer(view)
        if peer:
            yield placement.room_on(view.config, peer)
        mods = self.mods(view)
        coming = [disk for mod, disk in mods if mod.action == "attach" and disk]
        if coming:
            yield from ask_reach(view.config, coming, node)
        for mod, disk in mods:
            if mod.action == "modify" and disk:
                yield from ask_listed(view.config, disk)
        for disk in self._elsewhere(view):
            yield from ask_candidates(view.config, disk)
        yield from ask_dependents(view.config, self._destroyed(view))

    def _destroyed(self, view: View) -> list[Disk]:
        """Return the disks that are removed for good."""
        if self.keep_disks:
            return []
        mods = self.mods(view)
        return [disk for mod, disk in mods if mod.action == "remove" and disk]

    def _elsewhere(self, view: View) -> Iterator[Disk]:
        """Yield the disks that another node than the instance's may have to remove."""
        node = view.config.home(self.instance(view))
        for mod, disk in self.mods(view):
            if mod.action == "remove" and disk and elsewhere(disk, node):
                yield disk

    def check_folder(self, view: View) -> None:
        """Raise `BadInput` if a directory for image files is named, and none comes."""
        if not self.file_storage_dir:
            return
        wishes = [*self._wishes(view), *(one.wanted for one in self.conversions(view))]
        if not any(wanted.kind.capabilities.images for wanted in wishes):
            raise BadInput(
                "no disk that comes is an image file: it needs no directory",
                hint="leave --file-storage-dir out",
            )

    def _peer(self, view: View) -> Node | None:
        """Return the node that gets second copies of disks that are added, if it can.

        One that is marked offline can not: it is refused when the disks are looked at.
        """
        peer = copies.secondary(view.config, self.instance(view))
        mirrored = any(pairs.is_mirrored(one.template) for one in self._wishes(view))
        return peer if peer and mirrored and not peer.offline else None

    def rooms(self, view: View) -> Iterator[Claim]:
        """Claim the room of disks that are added."""
        home = view.config.home(self.instance(view))
        return disk_spec.rooms(view, self._wishes(view), home, self._peer(view))

    def check_disks(self, view: View) -> None:
        """Raise `Refused` unless the changes of disks can be made, and together."""
        instance = self.instance(view)
        if all(mod.action == "detach" for mod, _ in self.mods(view)):
            check_known(view, instance)  # as gnt-disk detach: its node may be off
        else:
            OnInstance.check(self, view)
        for gone in self._destroyed(view):
            check_own(gone)
        check_no_dependents(view, self._destroyed(view))
        node = view.config.home(instance)
        for mod, disk in self.mods(view):
            if disk is None:
                disk_checks.check(view, self._wish(view, mod), node)
            elif mod.action == "attach":
                check_free(view, disk, instance)
            elif mod.action == "modify" and not self.force_params:
                check_listed(view, disk, parameters(mod))
        disk_checks.check_distinct(self._wishes(view))
        adopted = [one.adopt for one in self._wishes(view) if one.at_path and one.adopt]
        identity.check_apart(view, adopted, node)
        try:
            list(self.tasks(view))
        except Conflict as conflict:
            raise BadInput(f"the changes do not fit together: {conflict}") from conflict

    def changes(self, view: View) -> tuple[list[Task], View]:
        """Return what changes the disks one after the other, and the view after it.

        What only verifies comes first; removed disks are let go, not yet destroyed.
        """
        tasks: list[Task] = []
        for mod, disk in self.mods(view):
            made = list(self._changed(view, mod, disk))
            tasks += made
            view = after(view, made)
        return sorted(tasks, key=_acts), view

    def _changed(self, view: View, mod: Mod, disk: Disk | None) -> Iterator[Task]:
        instance = self.instance(view)
        hot = runs(view, instance)
        if disk is None:
            yield from self._added(view, instance, mod, hot=hot)
        elif mod.action == "attach":
            check_index(instance, int(mod.ident))
            yield from attach_tasks(view, instance, disk, int(mod.ident), hot=hot)
        elif mod.action in ("detach", "remove"):
            yield from detach_tasks(view, instance, disk, hot=hot)
        else:
            now = view.config.disk(disk.uuid)
            new = successor(now, view.now, **modified(view.config, now, mod))
            if parameters(mod):
                yield from verified(view, new)
            yield view.record(f"change disk {disk.label}", new)

    def _added(
        self, view: View, instance: Instance, mod: Mod, *, hot: bool
    ) -> Iterator[Task]:
        config = view.config
        node, slot = config.home(instance), int(mod.ident)
        check_index(instance, slot)
        wanted = self._wish(view, mod)
        index = len(instance.disks) if slot == -1 else slot
        disk = disk_spec.bear(
            view,
            wanted,
            node,
            index=index,
            instance=instance.name,
            pair=self._pair(view, wanted, node),
        )
        disk = with_fields(disk, epoch=max(disk.epoch, 1))
        yield from node_tasks.verify(config, disk, node)
        yield from copies.create(config, disk, node)
        yield from copies.attach(config, disk, node)
        yield node_tasks.setinfo(config, disk, node, instance.name)
        if not (hot or instance.disks_active):
            yield from copies.detach(config, disk, node)
        disks = inserted(instance, disk.uuid, slot)
        owner = successor(instance, view.now, disks=disks)
        yield view.record(f"give disk {disk.label} to {instance.name}", disk, owner)
        if hot:
            yield guest_tasks.plug(instance, disk, node, index)
        if self.wait_for_sync and (hot or instance.disks_active):
            yield from copies.wait(config, disk, node)

    def _pair(self, view: View, wanted: disk_spec.DiskSpec, node: Node) -> Pair | None:
        """Return who keeps a new mirrored disk: the nodes that keep the others."""
        peer = copies.secondary(view.config, self.instance(view))
        mirrored = pairs.is_mirrored(wanted.template)
        if mirrored and peer and peer.offline:
            raise WrongState(
                f"node {peer.name} is marked offline: it gets no copy of a new disk",
                hint="give the instance another secondary node: "
                f"gnt-instance replace-disks -n NODE {self.instance(view).name}",
                node=peer.name,
            )
        if peer is None and mirrored:
            raise BadInput(
                f"instance {self.instance(view).name} has no secondary node for a "
                "mirrored disk",
                hint=f"gnt-disk add -t {wanted.template} -n {node.name}:OTHER ..., and "
                "attach it",
            )
        return pairs.wanted(view, wanted.template, node, peer)

    def new_disks(self, view: View) -> list[Disk]:
        """Return the disks that it makes."""
        then = after(view, self.tasks(view)).config
        found = then.disks_of(then.instance(self.instance(view).uuid))
        return [disk for disk in found if disk.uuid not in view.config.objects]

    def destroyed(self, view: View, disk: Disk) -> Iterator[Task]:
        """Yield what destroys a disk that was let go, and forgets it."""
        last = view.config.disk(disk.uuid)
        if self.keep_disks:
            yield view.record(f"forget disk {disk.label}", drop=(last,), final=True)
        else:
            home = view.config.home(self.instance(view))
            yield from copies.destroy(view, last, remover(view, last, home))


def _meant(view: View, instance: Instance, mod: Mod) -> Disk | None:
    if mod.action == "add":
        return None
    if mod.action == "attach":
        ((word, value),) = mod.params.items()
        return sought(view.config, word, str(value))
    return find_disk(view.config, instance, mod.ident)


def _acts(task: Task) -> bool:
    """Whether it does something; what only verifies comes first."""
    return not (isinstance(task, Run) and isinstance(task.do, VerifyDisk))


def after(view: View, tasks: Iterable[Task]) -> View:
    """Return the view as it is when the tasks are done."""
    config = view.config
    for task in tasks:
        if isinstance(task, Commit):
            config = apply(config, changes.from_json(task.change))
    return replace(view, config=config)


def told_of(view: View, instance: Instance, mod: Mod, disk: Disk | None) -> Changed:
    """Return a change of a disk in Ganeti's words."""
    if disk is None or mod.action == "attach":
        slot = len(instance.disks) if mod.ident == "-1" else int(mod.ident)
        came = disk or disk_spec.wish(view.config, mod.params)
        size = came.size
        if isinstance(came, disk_spec.DiskSpec):
            home = view.config.home(instance)
            size = disk_spec.born_size(view, came, home)
        return f"disk/{slot}", f"{mod.action}:size={size},mode={came.mode}"
    slot = instance.disks.index(disk.uuid)
    if mod.action == "modify":
        changed = ",".join(f"{name}={value}" for name, value in mod.params.items())
        return f"disk/{slot}", f"modify:{changed}"
    return f"disk/{slot}", mod.action
