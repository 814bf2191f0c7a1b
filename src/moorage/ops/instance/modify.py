# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance modify``: disks in and out, and what the instance is given.

Every disk that a request names is looked up once, in the state before the request.
What is done hot is done hot: on a running instance a disk is plugged or unplugged at
once, with or without ``--hotplug``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

from msgspec.structs import replace as with_fields

from moorage import backend
from moorage.errors import BadInput, Conflict, WrongState
from moorage.jobs import Commit, Lock, Question, Run, Task, View, commit
from moorage.jobs.unread import Moot, Unsupported
from moorage.model import (
    Change,
    Claim,
    Disk,
    Instance,
    Node,
    Pair,
    apply,
    hvparams,
    pair_of,
    successor,
)
from moorage.model import change as changes
from moorage.ops import (
    conversion,
    conversion_tasks,
    copies,
    disk_spec,
    identity,
    node_tasks,
    osparams,
    pairs,
    placement,
    policy,
    pools,
    screens,
)
from moorage.ops.disk.attach import attach_tasks, check_free, check_index, inserted
from moorage.ops.disk.detach import detach_tasks
from moorage.ops.disk_access import (
    ask_candidates,
    ask_reach,
    candidates,
    elsewhere,
    forgetting,
    remover,
)
from moorage.ops.disk_names import hold_names, sought
from moorage.ops.disk_params import ask_listed, check_listed, verified
from moorage.ops.instance import memory
from moorage.ops.instance.base import find_disk
from moorage.ops.instance.converting import ConvertingDisks
from moorage.ops.instance.disk_mods import (
    Mod,
    completed,
    modified,
    parameters,
    parse_mods,
)
from moorage.ops.instance.power import OnInstance
from moorage.ops.liveness import check_known, runs
from moorage.ops.storage.units import Named, has_room
from moorage.protocol import VerifyDisk
from moorage.storage.templates.ext import metadata


class InstanceSetParams(ConvertingDisks, frozen=True, kw_only=True):
    """Modify an instance.

    Attributes
    ----------
    disks
        See :func:`parse_mods`.
    keep_disks
        Forget removed disks without destroying their data.
    ignore_ipolicy
        Whether the policy of the node group does not count.
    """

    op_id = "OP_INSTANCE_SET_PARAMS"
    plans = True

    nics: Annotated[
        list[list[Any]],
        Unsupported("network cards are given when an instance is made"),
    ] = []
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    os_name: str | None = None
    offline: bool | None = None
    hotplug: Annotated[bool, Moot("what can be plugged is plugged at once")] = False
    hotplug_if_possible: Annotated[
        bool, Moot("what can be plugged is plugged at once")
    ] = False
    keep_disks: bool = False
    force: Annotated[bool, Moot("only people are asked")] = False
    force_variant: Annotated[
        bool, Moot("the OS that an instance is said to have is not looked up")
    ] = False
    ignore_ipolicy: bool = False
    conflicts_check: Annotated[bool, Moot("no address is looked for in networks")] = (
        True
    )

    # -- what is meant --------------------------------------------------------------

    def mods(self, view: View) -> list[tuple[Mod, Disk | None]]:
        """Return each change with the disk it is about, looked up once."""
        instance = self.instance(view)
        shared = disk_spec.shared_by(view.config.disks_of(instance))
        return [
            (completed(mod, self.disk_template, shared), _meant(view, instance, mod))
            for mod in parse_mods(self.disks)
        ]

    def _wishes(self, view: View) -> list[disk_spec.DiskSpec]:
        return [self._wish(view, mod) for mod, disk in self.mods(view) if disk is None]

    def _wish(self, view: View, mod: Mod) -> disk_spec.DiskSpec:
        wanted = disk_spec.wish(view.config, mod.params)
        return with_fields(wanted, force=self.force_params)

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
        """Ask whether it runs, and what its node reaches."""
        yield from ConvertingDisks.questions(self, view)
        yield from self._about_os(view)
        if self.beparams:
            yield from memory.ask(view, self.instance(view))
        node = view.config.node(self.instance(view).primary_node)
        group = view.config.group(node.group)
        for wanted in self._wishes(view):
            yield from disk_spec.ask(view.config, wanted, group)
            if has_room(wanted.template):
                yield placement.room_on(view.config, node)
        disks = [
            disk for mod, disk in self.mods(view) if mod.action == "attach" and disk
        ]
        if disks:
            yield from ask_reach(view.config, disks, node)
        for mod, disk in self.mods(view):
            if mod.action == "modify" and disk:
                yield from ask_listed(view.config, disk)

        for disk in self._elsewhere(view):
            yield from ask_candidates(view.config, disk)

    def _elsewhere(self, view: View) -> Iterator[Disk]:
        """Yield the disks that another node than the instance's may have to remove."""
        node = view.config.node(self.instance(view).primary_node)
        for mod, disk in self.mods(view):
            if mod.action == "remove" and disk and elsewhere(disk, node):
                yield disk

    # -- what is refused ------------------------------------------------------------

    def check(self, view: View) -> None:
        """Refuse before anything is done, whatever part of the request is off."""
        if not self._anything():
            raise BadInput("nothing to change was named", hint="see --help")
        self.check_conversions(view)
        conversion.check_rate(self.rate)
        instance = self.instance(view)
        backend.check(self.beparams)
        hvparams.check(instance.hypervisor, self.hvparams)
        if self.hvparams:
            own = _merged(instance.hvparams, self.hvparams)
            screens.check(view.config, instance.hypervisor, own)
        for question in self._about_os(view):
            new = self._with_os(view)
            node = view.config.node(question.node)
            osparams.check(view, node, new.os, new.osparams)
        if self.disks:
            self._check_disks(view, instance)
        if self.offline and runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is running: it cannot be marked offline",
                hint=f"gnt-instance shutdown {instance.name}",
            )
        self._check_size(view, instance)

    def _check_size(self, view: View, instance: Instance) -> None:
        """Raise unless policy and storage take it as it will be."""
        node = view.config.node(instance.primary_node)
        if not self.ignore_capacity:
            made = self._made(view, node)
            placement.check_room_for(view, f"instance {instance.name}", node, made)
            if self._gets_memory(view):
                memory.check_size(view, self._with_memory(view))
        if not self.ignore_ipolicy:
            after = _after(view, list(self.tasks(view))).config
            group = view.config.group(node.group)
            before = policy.sizes_of(view.config, instance)
            wanted = policy.sizes_of(after, after.instance(instance.uuid))
            policy.check_change(view.config, group, instance.name, before, wanted)

    def _made(self, view: View, node: Node) -> tuple[tuple[Named, int], ...]:
        """Return storage unit and size of the disks that are made."""
        wishes = [*self._wishes(view), *(one.wanted for one in self.conversions(view))]
        made = [wanted for wanted in wishes if not wanted.adopt]
        return tuple(disk_spec.room(view, wanted, node) for wanted in made)

    def _with_memory(self, view: View) -> Instance:
        """Return the instance with the back-end parameters that it is to have."""
        old = self.instance(view)
        new = backend.merged(old.beparams, self.beparams)
        return with_fields(old, beparams=new)

    def _gets_memory(self, view: View) -> bool:
        """Whether it should run; one that sleeps is looked at when it starts."""
        instance = self.instance(view)
        off = view.config.node(instance.primary_node).offline
        return bool(self.beparams) and instance.admin_state == "up" and not off

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of new disks, and the memory."""
        node = view.config.node(self.instance(view).primary_node)
        made = self._made(view, node)
        if made:
            yield Claim(node=node.uuid, rooms=made)
            yield from pairs.claims(map(pair_of, self._new(view)))
        mirroring = self.mirroring(view)
        if mirroring:
            yield from mirroring.claims(view)
        if self._gets_memory(view):
            yield memory.claim(view, self._with_memory(view))

    def warnings(self, view: View) -> Iterator[str]:
        """Name the hypervisor parameters that will have no effect."""
        yield from hvparams.warnings(self.instance(view).hypervisor, self.hvparams)
        yield from self.conversion_warnings(view)

    def _with_os(self, view: View) -> Instance:
        """Return the instance with the OS and the OS parameters that it is to have."""
        old = self.instance(view)
        params = _merged(old.osparams, self.osparams)
        return with_fields(old, os=self.os_name or old.os, osparams=params)

    def _about_os(self, view: View) -> Iterator[Question]:
        """Ask for OS definitions, if the OS changes and its node can be asked."""
        new = self._with_os(view)
        node = view.config.node(new.primary_node)
        if (self.osparams or self.os_name) and new.os and not node.offline:
            yield node_tasks.oses_on(node.uuid)

    def _anything(self) -> bool:
        told = (self.disks, self.hvparams, self.beparams, self.osparams, self.os_name)
        return any(told) or self.converts or self.offline is not None

    def _check_disks(self, view: View, instance: Instance) -> None:
        if all(mod.action == "detach" for mod, _ in self.mods(view)):
            check_known(view, instance)  # as gnt-disk detach: its node may be off
        else:
            OnInstance.check(self, view)
        node = view.config.node(instance.primary_node)
        for mod, disk in self.mods(view):
            if disk is None:
                disk_spec.check(view, self._wish(view, mod), node)
            elif mod.action == "attach":
                check_free(view, disk, instance)
            elif mod.action == "modify" and not self.force_params:
                check_listed(view, disk, parameters(mod))
        disk_spec.check_distinct(self._wishes(view))
        adopted = [wanted.adopt for wanted in self._wishes(view) if wanted.adopt]
        identity.check_apart(view, adopted, node)
        try:
            list(self.tasks(view))
        except Conflict as conflict:
            raise BadInput(f"the changes do not fit together: {conflict}") from conflict

    # -- what is done -----------------------------------------------------------------

    def tasks(self, view: View) -> Iterator[Task]:
        """Verify, change the disks one after the other, then the rest, then destroy."""
        gone: list[Disk] = []
        changes: list[Task] = []
        for mod, disk in self.mods(view):
            made = list(self._changed(view, mod, disk))
            changes += made
            view = _after(view, made)
            if mod.action == "remove" and disk:
                gone.append(disk)
        yield from sorted(changes, key=_acts)
        yield from self._rest(view)
        mirroring = self.mirroring(view)
        if mirroring:
            yield from mirroring.tasks(view)
        elif self.converts:
            yield from conversion_tasks.convert(view, self.conversions(view), self.rate)
        for disk in gone:
            yield from self._destroyed(view, disk)

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
            what = f"change disk {disk.label}"
            yield commit(what, Change((new,)), {now.uuid: now})

    def _added(
        self, view: View, instance: Instance, mod: Mod, *, hot: bool
    ) -> Iterator[Task]:
        config = view.config
        node, slot = config.node(instance.primary_node), int(mod.ident)
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
        disk = with_fields(disk, epoch=1)
        if not wanted.adopt:
            yield from node_tasks.verify(config, disk, node)
            yield from copies.create(config, disk, node)
        yield from copies.attach(config, disk, node)
        yield node_tasks.setinfo(config, disk, node, metadata(instance.name))
        if not (hot or instance.disks_active):
            yield from copies.detach(config, disk, node)
        disks = inserted(instance, disk.uuid, slot)
        change = Change((disk, successor(instance, view.now, disks=disks)))
        what = f"give disk {disk.label} to {instance.name}"
        yield commit(what, change, config.before(change))
        if hot:
            yield node_tasks.plug(instance, disk, node, index)
        if self.wait_for_sync and (hot or instance.disks_active):
            yield from copies.wait(config, disk, node)

    def _pair(self, view: View, wanted: disk_spec.DiskSpec, node: Node) -> Pair | None:
        """Return who keeps a new mirrored disk: the nodes that keep the others."""
        peer = copies.secondary(view.config, self.instance(view))
        if peer is None and pairs.is_mirrored(wanted.template):
            raise BadInput(
                f"instance {self.instance_name} has no secondary node for a mirrored "
                "disk",
                hint=f"gnt-disk add -t {wanted.template} -n {node.name}:OTHER ..., and "
                "attach it",
            )
        return pairs.wanted(view, wanted.template, node, peer)

    def _new(self, view: View) -> list[Disk]:
        """Return the disks that it makes."""
        after = _after(view, list(self.tasks(view))).config
        found = after.disks_of(after.instance(self.instance(view).uuid))
        return [disk for disk in found if disk.uuid not in view.config.objects]

    def _rest(self, view: View) -> Iterator[Task]:
        instance = self.instance(view)
        new: dict[str, Any] = {}
        for name, given in (("hvparams", self.hvparams), ("osparams", self.osparams)):
            if given:
                new[name] = _merged(getattr(instance, name), given)
        if self.beparams:
            new["beparams"] = self._with_memory(view).beparams
        if self.os_name:
            new["os"] = self.os_name
        if self.offline is not None:
            new["admin_state"] = "offline" if self.offline else "down"
        for question in self._about_os(view):
            node = view.config.node(question.node)
            yield osparams.verify(view, self._with_os(view), node)
        if new:
            changed = successor(instance, view.now, **new)
            change = Change((screens.with_port(view.config, changed),))
            what = f"change {instance.name}"
            yield commit(what, change, view.config.before(change))

    def _destroyed(self, view: View, disk: Disk) -> Iterator[Task]:
        last = view.config.disk(disk.uuid)
        if not self.keep_disks:
            home = view.config.node(self.instance(view).primary_node)
            node, hint = remover(view, last, home), forgetting(last)
            away = elsewhere(last, node)
            yield from copies.remove(view.config, last, node, sought=away, hint=hint)
        yield commit(f"forget disk {disk.label}", Change((), (last,)), {}, final=True)

    def result(self, view: View, results: Sequence[Any]) -> list[list[Any]]:
        """Return what was changed, in Ganeti's words."""
        del results
        told = [_told(view, self.instance(view), *one) for one in self.mods(view)]
        rest = (("be", self.beparams), ("hv", self.hvparams), ("os", self.osparams))
        told += [
            [f"{prefix}/{name}", value]
            for prefix, given in rest
            for name, value in given.items()
        ]
        if self.os_name:
            told.append(["os", self.os_name])
        if self.converts:
            told.append(["disk_template", self.disk_template or self.pool])
        if self.offline is not None:
            told.append(["admin_state", "offline" if self.offline else "down"])
        return told


def _meant(view: View, instance: Instance, mod: Mod) -> Disk | None:
    if mod.action == "add":
        return None
    if mod.action == "attach":
        ((word, value),) = mod.params.items()
        return sought(view.config, word, str(value))
    return find_disk(view.config, instance, mod.ident)


def _merged(old: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with some changed; the value ``default`` drops one."""
    new = {**old, **given}
    return {name: value for name, value in new.items() if value != "default"}


def _acts(task: Task) -> bool:
    """Whether it does something; what only verifies comes first."""
    return not (isinstance(task, Run) and isinstance(task.do, VerifyDisk))


def _after(view: View, tasks: list[Task]) -> View:
    """Return the view as it is when the tasks are done."""
    config = view.config
    for task in tasks:
        if isinstance(task, Commit):
            config = apply(config, changes.from_json(task.change))
    return replace(view, config=config)


def _told(view: View, instance: Instance, mod: Mod, disk: Disk | None) -> list[Any]:
    if disk is None:
        wanted = disk_spec.wish(view.config, mod.params)
        slot = len(instance.disks) if mod.ident == "-1" else int(mod.ident)
        size = disk_spec.born_size(
            view, wanted, view.config.node(instance.primary_node)
        )
        return [f"disk/{slot}", f"add:size={size},mode={wanted.mode}"]
    if mod.action == "attach":
        slot = len(instance.disks) if mod.ident == "-1" else int(mod.ident)
        return [f"disk/{slot}", f"attach:size={disk.size},mode={disk.mode}"]
    slot = instance.disks.index(disk.uuid)
    if mod.action == "modify":
        changed = ",".join(f"{name}={value}" for name, value in mod.params.items())
        return [f"disk/{slot}", f"modify:{changed}"]
    return [f"disk/{slot}", mod.action]
