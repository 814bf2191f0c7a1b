# SPDX-License-Identifier: BSD-2-Clause
"""Parameters, system and place: what ``gnt-instance modify`` changes besides."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from moorage import backend
from moorage.errors import WrongState
from moorage.jobs import Ask, Lock, Question, Task, View
from moorage.jobs.results import Changed
from moorage.model import Claim, Disk, Instance, Node, Os, hvparams, successor
from moorage.ops.asking import node_tasks
from moorage.ops.guests import osparams, screens
from moorage.ops.guests.liveness import runs
from moorage.ops.instance import memory, new_primary, runtime_memory
from moorage.ops.instance.change_request import Changes
from moorage.ops.instance.relocation import disks_in, moved
from moorage.ops.merging import merged
from moorage.ops.planning import cpu_models, placement, processors


class ParameterChanges(Changes):
    """What an instance is to be like, but for its disks and cards."""

    @cached_property
    def _pnode(self) -> Node | None:
        """The other primary node that it gets, if it gets one."""
        name = self.request.pnode
        return self.view.config.node(name) if name else None

    @cached_property
    def with_memory(self) -> Instance:
        """The instance with the back-end parameters that it is to have."""
        new = backend.merged(self.instance.beparams, self.request.beparams)
        return replace(self.instance, beparams=new)

    @cached_property
    def _with_parameters(self) -> Instance:
        """The instance with the hypervisor parameters, too, that it is to have."""
        new = merged(self.instance.hvparams, self.request.hvparams)
        return replace(self.with_memory, hvparams=new)

    @cached_property
    def _with_os(self) -> Instance:
        """The instance with the OS and the OS parameters that it is to have."""
        old, asked = self.instance, self.request
        return replace(
            old,
            os=asked.os_name or old.os,
            osparams=merged(old.osparams, asked.osparams),
            osparams_private=merged(old.osparams_private, asked.osparams_private),
        )

    @cached_property
    def _about_os(self) -> Ask[list[Os]] | None:
        """What asks for OS definitions, if that changes and its node can be asked."""
        asked = self.request
        given = asked.osparams or asked.osparams_private or asked.os_name
        if given and self._with_os.os and not self.node.offline:
            return node_tasks.oses_on(self.node.uuid)
        return None

    @property
    def gets_memory(self) -> bool:
        """Whether it should run; one that sleeps is looked at when it starts."""
        up = self.instance.admin_state == "up" and not self.node.offline
        return bool(self.request.beparams) and up

    def locks(self) -> Iterator[Lock]:
        """Share another primary node."""
        if self._pnode:
            yield Lock("node", self._pnode.uuid, shared=True)

    def questions(self) -> Iterator[Question]:
        """Ask for its OS, what another primary node reaches, and how much memory is."""
        if self._about_os:
            yield self._about_os
        if self._pnode:
            yield from new_primary.ask(self.view, self.instance, self._pnode)
        if self.request.beparams or self.request.hvparams.get("cpu_mask"):
            yield from memory.ask(self.view, self.instance)
        if self.request.runtime_mem is not None and not self.node.offline:
            yield placement.room_on(self.view.config, self.node)
        if self.request.hvparams:
            new = self._with_parameters
            yield from cpu_models.ask_start(self.view.config, new, self.node)

    def check_words(self) -> None:
        """Refuse parameters that there are not, or that do not fit the rest."""
        view, instance, asked = self.view, self.instance, self.request
        backend.check(asked.beparams)
        hvparams.check(instance.hypervisor, asked.hvparams)
        new = self._with_parameters
        if asked.hvparams:
            screens.check(view.config, instance.hypervisor, new.hvparams)
        if asked.hvparams or "vcpus" in asked.beparams:
            processors.check_fits(view, new, self.node)
        if self._about_os:
            new = self._with_os
            osparams.check(view, self.node, new.os, osparams.of_instance(new))

    def check(self) -> None:
        """Refuse what does not go with whether it runs, or where it is."""
        view, instance, asked = self.view, self.instance, self.request
        if asked.hotplug and not runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is not running: nothing can be plugged in",
                hint="leave --hotplug out: what is changed is there at its next start",
            )
        if asked.offline and runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is running: it cannot be marked offline",
                hint=f"gnt-instance shutdown {instance.name}",
            )
        if asked.offline is False and instance.admin_state == "up":
            raise WrongState(
                f"instance {instance.name} is up, and not marked offline: there is no "
                "mark to take away"
            )
        if self._pnode:
            new_primary.check(view, instance, self._pnode)
        if asked.runtime_mem is not None:
            then = replace(instance, beparams=self.with_memory.beparams)
            runtime_memory.check(view, then, asked.runtime_mem, force=asked.force)
            if not asked.ignore_capacity:
                runtime_memory.check_room(view, instance, asked.runtime_mem)

    def claims(self) -> Iterator[Claim]:
        """Claim the memory."""
        if self.gets_memory:
            yield memory.claim(self.view, self.with_memory)

    def warnings(self) -> Iterator[str]:
        """Name the parameters that will have no effect, and what nobody looked at."""
        asked = self.request
        yield from hvparams.warnings(self.instance.hypervisor, asked.hvparams)
        if asked.os_name and self.node.offline:
            yield (
                f"node {self.node.name} is marked offline: nobody looked whether it "
                f"has OS '{asked.os_name}'"
            )

    def tasks(self, then: View) -> Iterator[Task]:
        """Verify, and record; `then` is the view before that."""
        instance, new = self.request.instance(then), self._new(then)
        if self.request.runtime_mem is not None:
            yield runtime_memory.fill(self.view, instance, self.request.runtime_mem)
        if self._about_os:
            yield osparams.verify(then, self._with_os, self.node)
        if new:
            changed = successor(instance, then.now, **new)
            changed = screens.with_port(then.config, changed)
            yield then.record(
                f"change {instance.name}", *self._taken_along(then), changed
            )

    def _new(self, then: View) -> dict[str, Any]:
        """Return the fields of the instance that change."""
        instance, asked = self.request.instance(then), self.request
        new: dict[str, Any] = {}
        for name in ("hvparams", "osparams", "osparams_private"):
            if getattr(asked, name):
                new[name] = merged(getattr(instance, name), getattr(asked, name))
        if asked.beparams:
            new["beparams"] = self.with_memory.beparams
        if asked.os_name:
            new["os"] = asked.os_name
        if asked.offline is not None:
            new["admin_state"] = "offline" if asked.offline else "down"
        if self._pnode:
            new["primary_node"] = self._pnode.uuid
        return new

    def _taken_along(self, then: View) -> list[Disk]:
        """Return the disks one epoch on: late steps of the old node are refused."""
        if self._pnode is None:
            return []
        instance = self.request.instance(then)
        return disks_in(moved(then, instance, self._pnode, active=False))

    def told(self) -> Iterator[Changed]:
        """Yield what is changed, in Ganeti's words."""
        asked = self.request
        rest = (("be", asked.beparams), ("hv", asked.hvparams), ("os", asked.osparams))
        for prefix, given in rest:
            for name, value in given.items():
                yield f"{prefix}/{name}", value
        if asked.pnode:
            yield "pnode", asked.pnode
        for name in asked.osparams_private:
            yield f"os_private/{name}", "(not shown)"
        if asked.os_name:
            yield "os", asked.os_name
        if asked.converts:
            yield "disk_template", asked.disk_template or asked.pool
        yield from self._told_state()

    def _told_state(self) -> Iterator[Changed]:
        """Yield what is changed of the guest that runs, or may run."""
        asked = self.request
        if asked.runtime_mem is not None:
            yield "runtime_memory", asked.runtime_mem
        if asked.offline is not None:
            yield "admin_state", "offline" if asked.offline else "down"
