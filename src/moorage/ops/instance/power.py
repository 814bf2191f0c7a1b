# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance startup``, ``shutdown`` and ``reboot``."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec.structs import replace

from moorage import backend
from moorage.jobs import Run, Task, View, rights
from moorage.model import Instance, hvparams
from moorage.model.caller import Role
from moorage.model.kinds import Seconds
from moorage.ops.asking import node_tasks
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import runs
from moorage.ops.instance.base import (
    SHUTDOWN_TIMEOUT,
    OnInstance,
    attach_all,
    check_answers,
    detach_all,
    put_down,
)
from moorage.ops.instance.starting import (
    Starting,
    check_online,
    is_off,
    recorded,
    start_tasks,
    started,
    wake,
)
from moorage.protocol import RebootGuest


class InstanceStartup(Starting, frozen=True, kw_only=True):
    """Start an instance; one that stands still goes on, if it can.

    Attributes
    ----------
    hvparams
        Parameters of the hypervisor, for this run of the guest only.
    beparams
        Memory (``memory``, in MiB) and processors (``vcpus``), for this run of the
        guest only.
    startup_paused
        Let it stand still before its first instruction; starting it again lets it go.
    no_remember
        Leave on record what it was: a guest that ends is not missed.
    ignore_offline_nodes
        Where the node is marked offline, record only that it should run.
    force
        Start it although the second copy of a mirrored disk cannot follow.
    if_wanted
        Only one that should run by its record: another is left alone. So nobody who
        shut it down meanwhile is overruled.
    """

    op_id = "OP_INSTANCE_STARTUP"
    role = Role.OPERATE

    force: bool = False
    startup_paused: bool = False
    hvparams: Annotated[dict[str, Any], rights.HYPERVISOR] = {}
    beparams: dict[str, Any] = {}
    no_remember: bool = False
    ignore_offline_nodes: bool = False
    if_wanted: bool = False

    def goes_alone(self) -> bool:
        """Whether somebody insists."""
        return self.force

    def _is_idle(self, view: View) -> bool:
        return self.if_wanted and self.instance(view).admin_state != "up"

    def check(self, view: View) -> None:
        """Refuse what cannot run."""
        instance = self.instance(view)
        if self._is_idle(view):
            return
        hvparams.check(instance.hypervisor, self.hvparams)
        backend.check(self.beparams)
        if self.ignore_offline_nodes and is_off(view, instance):
            check_online(instance)
        else:
            Starting.check(self, view)

    def warnings(self, view: View) -> Iterator[str]:
        """Say what has no effect: parameters of the hypervisor's, and others."""
        instance = self.instance(view)
        given = node_tasks.hvparams(view.config, instance) | self.hvparams
        yield from hvparams.warnings(instance.hypervisor, given)
        if self.ignore_offline_nodes and is_off(view, instance):
            yield "the node is marked offline: the instance is recorded as up only"
        elif (self.hvparams or self.beparams) and runs(view, instance):
            yield f"instance {instance.name} runs already: it keeps its parameters"

    def as_it_runs(self, view: View) -> Instance:
        """Return the instance with the parameters of this run."""
        instance = self.instance(view)
        return replace(
            instance,
            hvparams=instance.hvparams | self.hvparams,
            beparams=backend.merged(instance.beparams, self.beparams),
        )

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach the disks, start the guest, record it."""
        instance = self.instance(view)
        if self._is_idle(view):
            return
        node = view.config.home(instance)
        if node.offline:
            yield from recorded(view, instance, "up", active=instance.disks_active)
        elif runs(view, instance):
            if not self.startup_paused:
                yield from wake(view, instance, node)
            yield from started(view, instance, remember=not self.no_remember)
        else:
            yield from start_tasks(
                view,
                self.as_it_runs(view),
                node,
                remember=not self.no_remember,
                alone=self.force,
                paused=self.startup_paused,
            )


class InstanceShutdown(OnInstance, frozen=True, kw_only=True):
    """Power an instance down.

    Attributes
    ----------
    timeout
        How long the guest gets; then its process is ended.
    force
        Also one that is marked offline, which it stays.
    ignore_offline_nodes
        Where the node is marked offline, record only that it should not run.
    no_remember
        Leave on record that it should run.
    admin_state_source
        Who wants it: ``admin``, or ``user`` for the guest's own.
    if_ended
        Only one whose guest has ended: one that runs again is left alone.
    """

    op_id = "OP_INSTANCE_SHUTDOWN"
    role = Role.OPERATE

    timeout: Seconds = SHUTDOWN_TIMEOUT
    force: bool = False
    ignore_offline_nodes: bool = False
    no_remember: bool = False
    admin_state_source: Literal["admin", "user"] = "admin"
    if_ended: bool = False

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent, and one that is marked.

        A disk in quarantine does not keep its guest up: it is let go, not used.
        """
        instance = self.instance(view)
        if not self.force:
            check_online(instance)
        if not (self.ignore_offline_nodes and is_off(view, instance)):
            check_answers(view, instance)

    def warnings(self, view: View) -> Iterator[str]:
        """Say what is not done."""
        instance = self.instance(view)
        if instance.admin_state == "offline":
            yield f"instance {instance.name} is marked offline, and stays so"
        if is_off(view, instance):
            yield "the node is marked offline: the instance is recorded as down only"

    def tasks(self, view: View) -> Iterator[Task]:
        """Stop the guest, detach the disks, record it."""
        instance = self.instance(view)
        if self.if_ended and runs(view, instance):
            return
        if not is_off(view, instance):
            node = view.config.home(instance)
            yield from put_down(view, instance, node, self.timeout)
        kept = self.no_remember or instance.admin_state == "offline"
        state = instance.admin_state if kept else "down"
        source = instance.admin_state_source if kept else self.admin_state_source
        yield from recorded(view, instance, state, active=False, source=source)


class InstanceReboot(Starting, frozen=True, kw_only=True):
    """Reboot an instance.

    Attributes
    ----------
    reboot_type
        ``soft`` resets the guest, as a button on its machine would. ``hard`` stops and
        starts it, as its record is by now: memory, processors, media, screen. ``full``
        does so, and takes its disks from the node meanwhile.
    shutdown_timeout
        How long the guest gets to power down; ``soft`` asks for none.
    ignore_secondaries
        Start it although the second copy of a mirrored disk cannot follow.
    """

    op_id = "OP_INSTANCE_REBOOT"
    role = Role.OPERATE

    reboot_type: Literal["soft", "hard", "full"] = "hard"
    ignore_secondaries: bool = False
    shutdown_timeout: Seconds = SHUTDOWN_TIMEOUT

    def goes_alone(self) -> bool:
        """Whether somebody insists."""
        return self.ignore_secondaries

    def begins(self, view: View) -> bool:
        """Whether a guest is to start; none may be stopped that then could not."""
        return self.reboot_type != "soft" or Starting.begins(self, view)

    def takes_disks(self, view: View) -> bool:
        """Whether the node is to take its disks."""
        return self.reboot_type == "full" or Starting.begins(self, view)

    def tasks(self, view: View) -> Iterator[Task]:
        """Reset the guest, or stop and start it."""
        instance = self.instance(view)
        node = view.config.home(instance)
        disks = view.config.disks_of(instance)
        alone = self.ignore_secondaries
        if not runs(view, instance):
            yield from start_tasks(view, instance, node, alone=alone)
        elif self.reboot_type == "soft":
            yield Run(
                what=f"reset {instance.name} on {node.name}",
                node=node.uuid,
                do=RebootGuest(**node_tasks.of_guest(instance), disks=tuple(disks)),
            )
            yield from started(view, instance)
        else:
            full, timeout = self.reboot_type == "full", self.shutdown_timeout
            yield guest_tasks.stop(view.config, instance, disks, node, timeout)
            if full:
                yield from detach_all(view, instance, node)
                yield from attach_all(view, disks, node, alone=alone)
            yield guest_tasks.start(view.config, instance, disks, node)
            yield from started(view, instance, alone=full and alone)
