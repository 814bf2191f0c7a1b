# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance modify``: disks in and out, and what the instance is given."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec.structs import replace as with_fields

from moorage import backend
from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, Sought, Task, View
from moorage.jobs.results import Changed
from moorage.jobs.unread import Moot, Unsupported
from moorage.model import Claim, Disk, Instance, hvparams, pair_of, successor
from moorage.ops.asking import node_tasks
from moorage.ops.filling import conversion, conversion_tasks
from moorage.ops.guests import osparams, screens
from moorage.ops.guests.liveness import check_unused, runs, seek
from moorage.ops.instance import memory, new_primary
from moorage.ops.instance.changing_cards import ChangingCards
from moorage.ops.instance.changing_disks import ChangingDisks, after, told_of
from moorage.ops.instance.relocation import disks_in, moved
from moorage.ops.merging import merged
from moorage.ops.planning import disk_checks, placement, policy, processors
from moorage.ops.volumes import pairs


class InstanceSetParams(ChangingCards, frozen=True, kw_only=True):
    """Modify an instance.

    Attributes
    ----------
    hvparams
        Parameters of the hypervisor; the value ``default`` drops one.
    beparams
        Memory (``memory``, in MiB), processors (``vcpus``) and the like; the value
        ``default`` drops one.
    osparams
        OS parameters; the value ``default`` drops one.
    os_name
        Another OS definition, with variant; nothing is installed.
    offline
        Mark it as not to be started, or take the mark off.
    osparams_private
        OS parameters that are shown to nobody.
    pnode
        Another primary node for an instance that is down; nothing is moved there.
    hotplug
        Refuse if no guest runs; what can be plugged is plugged at once in any case.
    ignore_ipolicy
        Whether the policy of the node group does not count.
    """

    op_id = "OP_INSTANCE_SET_PARAMS"
    plans = True

    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    osparams: dict[str, Any] = {}
    osparams_private: dict[str, Any] = {}
    os_name: str | None = None
    offline: bool | None = None
    pnode: str | None = None
    hotplug: bool = False
    hotplug_if_possible: Annotated[
        bool, Moot("what can be plugged is plugged at once")
    ] = False
    force: Annotated[bool, Moot("only people are asked")] = False
    force_variant: Annotated[
        bool, Unsupported("an OS has the variants that its list names")
    ] = False
    ignore_ipolicy: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance and its disks; share another primary node."""
        yield from ChangingDisks.locks(self, view)
        if self.pnode:
            yield Lock("node", view.config.node(self.pnode).uuid, shared=True)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest.

        If it gets another primary node, or its disks other storage, or none.
        """
        if self.pnode or self.takes_disks(view):
            yield from seek(view.config, self.instance(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and what its node reaches."""
        yield from ChangingCards.questions(self, view)
        yield from self._about_os(view)
        if self.pnode:
            node = view.config.node(self.pnode)
            yield from new_primary.ask(view, self.instance(view), node)
        if self.beparams or self.hvparams.get("cpu_mask"):
            yield from memory.ask(view, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse before anything is done, whatever part of the request is off."""
        if not self._anything():
            raise BadInput("nothing to change was named", hint="see --help")
        self.check_conversions(view)
        disk_checks.check_rate(self.rate)
        instance = self.instance(view)
        backend.check(self.beparams)
        self._check_hvparams(view)
        for question in self._about_os(view):
            new = self._with_os(view)
            node = view.config.node(question.node)
            osparams.check(view, node, new.os, osparams.of_instance(new))
        if self.takes_disks(view):
            check_unused(view, instance)
        if self.disks:
            self.check_disks(view)
        self.check_folder(view)
        self.check_cards(view)
        if self.hotplug and not runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is not running: nothing can be plugged in",
                hint="leave --hotplug out: what is changed is there at its next start",
            )
        if self.offline and runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is running: it cannot be marked offline",
                hint=f"gnt-instance shutdown {instance.name}",
            )
        if self.pnode:
            new_primary.check(view, instance, view.config.node(self.pnode))
        self._check_size(view, instance)

    def _check_hvparams(self, view: View) -> None:
        """Refuse parameters of the hypervisor that do not fit the rest."""
        instance, new = self.instance(view), self._with_parameters(view)
        hvparams.check(instance.hypervisor, self.hvparams)
        if self.hvparams:
            screens.check(view.config, instance.hypervisor, new.hvparams)
        if "cpu_mask" in self.hvparams or "vcpus" in self.beparams:
            processors.check_fits(view, new, view.config.home(instance))

    def _check_size(self, view: View, instance: Instance) -> None:
        """Raise unless policy and storage take it as it will be."""
        if not self.ignore_capacity:
            what = f"instance {instance.name}"
            placement.check_rooms(view, what, self.rooms(view))
            conversion.check_room(view, self.conversions(view))
            if self._gets_memory(view):
                memory.check_size(view, self._with_memory(view))
        if not self.ignore_ipolicy:
            then = after(view, self.tasks(view)).config
            group = view.config.group_of(instance)
            wanted = policy.sizes_of(then, then.instance(instance.uuid))
            policy.check_change(view.config, group, instance, wanted)

    def _with_memory(self, view: View) -> Instance:
        """Return the instance with the back-end parameters that it is to have."""
        old = self.instance(view)
        new = backend.merged(old.beparams, self.beparams)
        return with_fields(old, beparams=new)

    def _with_parameters(self, view: View) -> Instance:
        """Return it with the hypervisor parameters, too, that it is to have."""
        new = self._with_memory(view)
        return with_fields(new, hvparams=merged(new.hvparams, self.hvparams))

    def _gets_memory(self, view: View) -> bool:
        """Whether it should run; one that sleeps is looked at when it starts."""
        instance = self.instance(view)
        off = view.config.home(instance).offline
        return bool(self.beparams) and instance.admin_state == "up" and not off

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of new disks, and the memory."""
        yield from self.rooms(view)
        if self.disks:
            yield from pairs.claims(map(pair_of, self.new_disks(view)))
        yield from conversion.claims(view, self.conversions(view))
        mirroring = self.mirroring(view)
        if mirroring:
            yield from mirroring.claims(view)
        if self._gets_memory(view):
            yield memory.claim(view, self._with_memory(view))
        yield from self.card_claims(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Name the parameters that will have no effect, and what nobody looked at."""
        yield from hvparams.warnings(self.instance(view).hypervisor, self.hvparams)
        home = view.config.home(self.instance(view))
        if self.os_name and home.offline:
            yield (
                f"node {home.name} is marked offline: nobody looked whether it has OS "
                f"'{self.os_name}'"
            )
        yield from self.conversion_warnings(view)

    def _with_os(self, view: View) -> Instance:
        """Return the instance with the OS and the OS parameters that it is to have."""
        old = self.instance(view)
        return with_fields(
            old,
            os=self.os_name or old.os,
            osparams=merged(old.osparams, self.osparams),
            osparams_private=merged(old.osparams_private, self.osparams_private),
        )

    def _about_os(self, view: View) -> Iterator[Question]:
        """Ask for OS definitions, if the OS changes and its node can be asked."""
        new = self._with_os(view)
        node = view.config.home(new)
        given = self.osparams or self.osparams_private or self.os_name
        if given and new.os and not node.offline:
            yield node_tasks.oses_on(node.uuid)

    def _anything(self) -> bool:
        told = (self.disks, self.nics, self.hvparams, self.beparams, self.osparams)
        return (
            any((*told, self.os_name, self.osparams_private, self.pnode))
            or self.converts
            or self.offline is not None
        )

    def tasks(self, view: View) -> Iterator[Task]:
        """Verify; change disks, one after the other, cards, and the rest; destroy."""
        changes, then = self.changes(view)
        yield from changes
        cards = list(self.card_tasks(view, then))
        yield from cards
        then = after(then, cards)
        yield from self._rest(then)
        mirroring = self.mirroring(view)
        if mirroring:
            yield from mirroring.tasks(view)
        elif self.converts:
            yield from conversion_tasks.convert(view, self.conversions(view), self.rate)
        for mod, disk in self.mods(view):
            if mod.action == "remove" and disk:
                yield from self.destroyed(then, disk)

    def _new(self, view: View) -> dict[str, Any]:
        """Return the fields of the instance that change."""
        instance = self.instance(view)
        new: dict[str, Any] = {}
        for name in ("hvparams", "osparams", "osparams_private"):
            if getattr(self, name):
                new[name] = merged(getattr(instance, name), getattr(self, name))
        if self.beparams:
            new["beparams"] = self._with_memory(view).beparams
        if self.os_name:
            new["os"] = self.os_name
        if self.offline is not None:
            new["admin_state"] = "offline" if self.offline else "down"
        if self.pnode:
            new["primary_node"] = view.config.node(self.pnode).uuid
        return new

    def _rest(self, view: View) -> Iterator[Task]:
        instance, new = self.instance(view), self._new(view)
        for question in self._about_os(view):
            node = view.config.node(question.node)
            yield osparams.verify(view, self._with_os(view), node)
        if new:
            changed = successor(instance, view.now, **new)
            changed = screens.with_port(view.config, changed)
            disks = self._taken_along(view) if self.pnode else ()
            yield view.record(f"change {instance.name}", *disks, changed)

    def _taken_along(self, view: View) -> list[Disk]:
        """Return the disks one epoch on: late steps of the old node are refused."""
        node = view.config.node(str(self.pnode))
        return disks_in(moved(view, self.instance(view), node, active=False))

    def result(self, view: View, _results: Sequence[Any]) -> list[Changed]:
        """Return what was changed, in Ganeti's words."""
        told = [told_of(view, self.instance(view), *one) for one in self.mods(view)]
        told += self.told_of_cards(view)
        rest = (("be", self.beparams), ("hv", self.hvparams), ("os", self.osparams))
        told += [
            (f"{prefix}/{name}", value)
            for prefix, given in rest
            for name, value in given.items()
        ]
        if self.pnode:
            told.append(("pnode", self.pnode))
        told += [
            (f"os_private/{name}", "(not shown)") for name in self.osparams_private
        ]
        if self.os_name:
            told.append(("os", self.os_name))
        if self.converts:
            told.append(("disk_template", self.disk_template or self.pool))
        if self.offline is not None:
            told.append(("admin_state", "offline" if self.offline else "down"))
        return told
