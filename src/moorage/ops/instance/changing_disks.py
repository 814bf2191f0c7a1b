# SPDX-License-Identifier: BSD-2-Clause
"""Disks that come to an instance, go, or change: ``gnt-instance modify --disk``.

Every disk that a request names is looked up once, in the state before the request.
What is done hot is done hot: on a running instance a disk is plugged or unplugged at
once, with or without ``--hotplug``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from msgspec.structs import replace as with_fields

from moorage.errors import BadInput, WrongState
from moorage.jobs import Commit, Lock, Question, Run, Task, View
from moorage.jobs.results import Changed
from moorage.model import Claim, Config, Disk, Instance, Node, Pair, apply, successor
from moorage.model import change as changes
from moorage.ops.asking import node_tasks
from moorage.ops.disk.attach import attach_tasks, check_free, check_index, inserted
from moorage.ops.disk.detach import detach_tasks, told_detach
from moorage.ops.disk.rename import hold_rename
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import check_known, runs
from moorage.ops.guests.plugging import check_plugs
from moorage.ops.instance import disk_mods
from moorage.ops.instance.base import check_usable, find_disk
from moorage.ops.instance.change_request import ChangeRequest, Changes
from moorage.ops.instance.disk_mods import Mod
from moorage.ops.planning import disk_checks, placement
from moorage.ops.volumes import (
    copies,
    disk_access,
    disk_spec,
    disk_words,
    identity,
    pairs,
    pools,
)
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_names import (
    check_unused,
    freed_names,
    hold_freed,
    hold_leaving,
    hold_name,
    sought,
    told_freed,
)
from moorage.ops.volumes.disk_params import ask_listed, check_listed, verified
from moorage.ops.volumes.disk_words import DiskSpec, DiskWords
from moorage.ops.volumes.units import has_room
from moorage.protocol import VerifyDisk


class Change(NamedTuple):
    """One change, and what it is about: a disk, or the words of a new one."""

    mod: Mod
    disk: Disk | None
    words: DiskWords | None


class DiskChanges(Changes):
    """The disks that come to an instance, go, or change."""

    @cached_property
    def changes(self) -> list[Change]:
        """Each change, what it is about looked up once."""
        asked, config = self.request, self.view.config
        shared = disk_words.shared_by(config.disks_of(self.instance))
        return [
            _change(config, self.instance, one, asked, shared)
            for one in disk_mods.parse_mods(asked.disks)
        ]

    def _disks(self, action: str) -> list[Disk]:
        """Return the disks that something is done with."""
        found = (one.disk for one in self.changes if one.mod.action == action)
        return [disk for disk in found if disk]

    @cached_property
    def lets_go(self) -> bool:
        """Whether disks are removed or detached."""
        return any(one.mod.action in ("remove", "detach") for one in self.changes)

    @cached_property
    def wishes(self) -> list[DiskSpec]:
        """The new disks."""
        config = self.view.config
        return [one.words.read(config) for one in self.changes if one.words]

    def locks(self) -> Iterator[Lock]:
        """Hold the disks, and what new ones need."""
        for mod, disk, _ in self.changes:
            if disk:
                yield Lock("disk", disk.uuid)
                yield from pools.hold([disk.pool])
            if disk:
                yield from self._names(mod, disk)
        yield from hold_freed(self.view.config, self._disks("detach"))
        for disk in self._elsewhere:
            for node in disk_access.candidates(self.view.config, disk):
                yield Lock("node", node.uuid, shared=True)
        yield from disk_spec.hold(self.view, self.wishes)

    def _names(self, mod: Mod, disk: Disk) -> Iterator[Lock]:
        """Hold the names that a disk has, and gets."""
        if mod.action == "attach":
            yield from hold_name(disk.name, sole=disk.by_name)
        elif mod.action == "remove":
            yield from hold_leaving(disk)
        elif "name" in mod.params:
            yield from hold_rename(self.view.config, disk, mod.params["name"])

    def questions(self) -> Iterator[Question]:
        """Ask what its node reaches, and what new disks need."""
        config, node = self.view.config, self.node
        group = config.group(node.group)
        for wanted in self.wishes:
            yield from disk_spec.ask(config, wanted, group)
            if has_room(wanted.template):
                yield placement.room_on(config, node)
        if self._peer:
            yield placement.room_on(config, self._peer)
        coming = self._disks("attach")
        if coming:
            yield from disk_access.ask_reach(config, coming, node)
        for disk in self._disks("modify"):
            yield from ask_listed(config, disk)
        for disk in self._elsewhere:
            yield from disk_access.ask_candidates(config, disk)
        yield from ask_dependents(config, self._destroyed)

    @property
    def _destroyed(self) -> list[Disk]:
        """The disks that are removed for good."""
        return [] if self.request.keep_disks else self._disks("remove")

    @property
    def _elsewhere(self) -> Iterator[Disk]:
        """The disks that another node than the instance's may have to remove."""
        gone = self._disks("remove")
        return (disk for disk in gone if disk_access.elsewhere(disk, self.node))

    @cached_property
    def _peer(self) -> Node | None:
        """The node that gets second copies of disks that are added, if it can.

        One that is marked offline can not: it is refused when the disks are looked at.
        """
        peer = copies.secondary(self.view.config, self.instance)
        mirrored = any(one.mirrored for one in self.wishes)
        return peer if peer and mirrored and not peer.offline else None

    def rooms(self) -> Iterator[Claim]:
        """Claim the room of disks that are added."""
        return disk_spec.rooms(self.view, self.wishes, self.node, self._peer)

    def check(self) -> None:
        """Raise `Refused` unless each change can be made."""
        view, instance, node = self.view, self.instance, self.node
        if all(one.mod.action == "detach" for one in self.changes):
            check_known(view, instance)  # as gnt-disk detach: its node may be off
        else:
            check_usable(view, instance)
        for gone in self._destroyed:
            disk_access.check_own(gone)
        check_no_dependents(view, self._destroyed)
        for mod, disk, words in self.changes:
            if words:
                disk_checks.check(view, words.read(view.config), node)
            elif disk and mod.action == "attach":
                check_free(view, disk, instance)
            elif disk and mod.action == "modify" and not self.request.force_params:
                check_listed(view, disk, disk_mods.parameters(mod))
        disk_checks.check_distinct(self.wishes)
        adopted = [one.adopt for one in self.wishes if one.at_path and one.adopt]
        identity.check_apart(view, adopted, node)

    def tasks(self) -> tuple[list[Task], View]:
        """Return what changes the disks one after the other, and the view after it.

        What only verifies comes first; removed disks are let go, not yet destroyed.
        """
        tasks: list[Task] = []
        now = self.view
        for step in self._steps():
            made = list(self._changed(now, step))
            tasks += made
            now = after(now, made)
        return sorted(tasks, key=_acts), now

    def _steps(self) -> Iterator[list[Change]]:
        """Yield what is changed at once: what is modified in a row may swap names."""
        for modified, row in groupby(self.changes, _modifies):
            step = list(row)
            yield from [step] if modified else ([one] for one in step)

    def _changed(self, now: View, step: Sequence[Change]) -> Iterator[Task]:
        instance = self.request.instance(now)
        mod, disk, words = step[0]
        hot = runs(now, instance)
        if words or mod.action in ("attach", "detach", "remove"):
            check_plugs(now, instance, "a disk that comes or goes")
        if words:
            wanted, slot = words.read(now.config), int(mod.ident)
            yield from self._added(now, instance, wanted, slot, hot=hot)
        elif disk is None:
            return
        elif mod.action == "attach":
            check_index(instance, int(mod.ident))
            yield from attach_tasks(now, instance, disk, int(mod.ident), hot=hot)
        elif mod.action in ("detach", "remove"):
            ends = mod.action == "remove"
            yield from detach_tasks(now, instance, disk, hot=hot, ends=ends)
        else:
            yield from self._modified(now, step)

    def _modified(self, now: View, mods: Sequence[Change]) -> Iterator[Task]:
        """Change disks in one commit, each from what the one before made of it."""
        config, made = now.config, dict[str, Disk]()
        known = [config.disk(one.disk.uuid) for one in mods if one.disk]
        pairs = list(zip(known, mods, strict=True))
        renamed = {old.uuid for old, one in pairs if "name" in one.mod.params}
        for old, one in pairs:
            last = made.get(old.uuid, old)
            fields = disk_mods.modified(config, last, one.mod, renamed - {old.uuid})
            new = successor(old, now.now) if last is old else last
            made[old.uuid] = with_fields(new, **fields)
            if disk_mods.parameters(one.mod):
                yield from verified(now, made[old.uuid])
        names = [one.name for one in made.values() if one.name]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            its = f"instance {self.instance.name}"
            raise BadInput(f"two disks of {its} would be named '{twice[0]}'")
        labels = ", ".join({one.label: None for one in known})
        yield now.record(f"change disk {labels}", *made.values())
        yield from copies.retuned(config, config, made.values())

    def _added(
        self, now: View, instance: Instance, wanted: DiskSpec, slot: int, *, hot: bool
    ) -> Iterator[Task]:
        config = now.config
        node = config.home(instance)
        check_index(instance, slot)
        if wanted.name:
            check_unused(config, wanted.name, instance)
        index = len(instance.disks) if slot == -1 else slot
        disk = disk_spec.new_disk(
            now,
            wanted,
            node,
            index=index,
            instance=instance.name,
            pair=_pair(now, instance, wanted, node),
        )
        disk = with_fields(disk, epoch=max(disk.epoch, 1))
        yield from node_tasks.verify(config, disk, node)
        yield from copies.create(config, disk, node)
        yield from copies.attach(config, disk, node)
        yield node_tasks.setinfo(config, disk, node, instance.name)
        if not (hot or instance.disks_active):
            yield from copies.detach(config, disk, node)
        disks = inserted(instance, disk.uuid, slot)
        owner = successor(instance, now.now, disks=disks)
        yield now.record(f"give disk {disk.label} to {instance.name}", disk, owner)
        if hot:
            yield guest_tasks.plug(instance, disk, node, index)
        if self.request.wait_for_sync and (hot or instance.disks_active):
            yield from copies.wait(config, disk, node)

    def destroyed(self, then: View) -> Iterator[Task]:
        """Yield what destroys the disks that were let go, and forgets them."""
        for disk in self._disks("remove"):
            last = then.config.disk(disk.uuid)
            if self.request.keep_disks:
                yield then.record(f"forget disk {disk.label}", drop=(last,), final=True)
            else:
                home = then.config.home(self.request.instance(then))
                yield from copies.destroy(
                    then, last, disk_access.remover(then, last, home)
                )

    def warnings(self) -> Iterator[str]:
        """Say which disks are called otherwise from now on."""
        return told_freed(self.view.config, self._disks("detach"))

    def told(self) -> list[Changed]:
        """Return the changes in Ganeti's words."""
        names = freed_names(self.view.config, self._disks("detach"))
        return [_told(self.view, self.instance, names, *one) for one in self.changes]


def _modifies(one: Change) -> bool:
    return one.mod.action == "modify"


def _change(
    config: Config,
    instance: Instance,
    mod: Mod,
    asked: ChangeRequest,
    shared: dict[str, Any],
) -> Change:
    meant = disk_mods.completed(mod, asked.disk_template, shared)
    if mod.action == "add":
        return Change(meant, None, disk_words.mixed(meant.params, own=asked.of_disks))
    if mod.action == "attach":
        ((word, value),) = mod.params.items()
        return Change(meant, sought(config, word, str(value)), None)
    return Change(meant, find_disk(config, instance, mod.ident), None)


def _pair(now: View, instance: Instance, wanted: DiskSpec, node: Node) -> Pair | None:
    """Return who keeps a new mirrored disk: the nodes that keep the others."""
    peer = copies.secondary(now.config, instance)
    if wanted.mirrored and peer and peer.offline:
        raise WrongState(
            f"node {peer.name} is marked offline: it gets no copy of a new disk",
            hint="give the instance another secondary node: "
            f"gnt-instance replace-disks -n NODE {instance.name}",
            node=peer.name,
        )
    if wanted.mirrored and peer is None:
        raise BadInput(
            f"instance {instance.name} has no secondary node for a mirrored disk",
            hint=f"gnt-disk add -t {wanted.template} -n {node.name}:OTHER ..., and "
            "attach it",
        )
    return pairs.wanted(now, wanted, node, peer)


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


def _told(
    view: View,
    instance: Instance,
    names: Mapping[str, str | None],
    mod: Mod,
    disk: Disk | None,
    words: DiskWords | None,
) -> Changed:
    """Return a change of a disk in Ganeti's words.

    Parameters
    ----------
    names
        What disks that leave are called then, by uuid.
    """
    if words or disk is None or mod.action == "attach":
        slot = len(instance.disks) if mod.ident == "-1" else int(mod.ident)
        came = words.read(view.config) if words else disk
        size = came.size if came else None
        if isinstance(came, DiskSpec):
            size = disk_spec.born_size(view, came, view.config.home(instance))
        mode = came.mode if came else ""
        return f"disk/{slot}", f"{mod.action}:size={size},mode={mode}"
    slot = instance.disks.index(disk.uuid)
    if mod.action == "modify":
        changed = ",".join(f"{name}={value}" for name, value in mod.params.items())
        return f"disk/{slot}", f"modify:{changed}"
    if mod.action == "detach":
        return f"disk/{slot}", told_detach(disk, names[disk.uuid])
    return f"disk/{slot}", mod.action
