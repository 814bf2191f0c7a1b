# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance startup``, ``shutdown`` and ``reboot``; and its disks without it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from moorage.errors import WrongState
from moorage.jobs import Lock, Operation, Question, Run, Task, View, commit
from moorage.jobs.unread import Idle, Moot, Unsupported
from moorage.model import Change, Instance, Node, hvparams, successor
from moorage.ops import calls
from moorage.ops.guests import guest, runs
from moorage.ops.instance.common import (
    ask,
    attach_all,
    check_usable,
    detach_all,
    hold,
)
from moorage.ops.reach import ask_reach, check_reach

PATIENCE = 120.0
"""Seconds that a guest gets to power down, as in Ganeti."""


class OnInstance(Operation, frozen=True, kw_only=True):
    """An operation on one instance, its disks and its node."""

    instance_name: str

    def instance(self, view: View) -> Instance:
        """Return the instance."""
        return view.config.instance(self.instance_name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks; share its node."""
        yield from hold(self.instance(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs."""
        yield from ask(self.instance(view))

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent, or with a quarantined disk."""
        check_usable(view, self.instance(view))


def recorded(view: View, instance: Instance, state: str, *, active: bool) -> list[Task]:
    """Return the task that records a state, or none if it is recorded already."""
    if (instance.admin_state, instance.disks_active) == (state, active):
        return []
    new = successor(instance, view.now, admin_state=state, disks_active=active)
    change = Change((new,))
    what = f"record {instance.name} as {state}"
    return [commit(what, change, view.config.before(change))]


def start_tasks(view: View, instance: Instance, node: Node) -> Iterator[Task]:
    """Yield the tasks that bring a guest up."""
    disks = view.config.disks_of(instance)
    yield from attach_all(view, disks, node)
    yield calls.start(view.config, instance, disks, node)
    yield from recorded(view, instance, "up", active=True)


def _wake(view: View, instance: Instance, node: Node) -> Iterator[Task]:
    """Yield the task that lets a guest go on which stands still; nothing undoes it."""
    found = guest(view, instance)
    if found and found.state == "paused":
        disks = view.config.disks_of(instance)
        yield Run(
            what=f"wake {instance.name} on {node.name}",
            node=node.uuid,
            do=calls.guest_call(view.config, "instance.start", instance, disks),
        )


class InstanceStartup(OnInstance, frozen=True, kw_only=True):
    """Start an instance; one that stands still goes on, if it can."""

    op_id = "OP_INSTANCE_STARTUP"

    force: Annotated[bool, Moot("no disk has a second copy that could be missing")] = (
        False
    )
    startup_paused: Annotated[bool, Unsupported("a guest begins to run at once")] = (
        False
    )
    hvparams: Annotated[
        dict[str, Any],
        Unsupported(
            "gnt-instance modify -H changes parameters, from the next start on"
        ),
    ] = {}
    beparams: Annotated[
        dict[str, Any],
        Unsupported(
            "gnt-instance modify -B changes parameters, from the next start on"
        ),
    ] = {}
    no_remember: Annotated[
        bool, Unsupported("the state of an instance is always recorded")
    ] = False

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and whether the node reaches its disks."""
        yield from OnInstance.questions(self, view)
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        yield from ask_reach(view.config.disks_of(instance), node)

    def check(self, view: View) -> None:
        """Refuse what cannot run."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        if instance.admin_state == "offline":
            raise WrongState(
                f"instance {instance.name} is marked offline",
                hint=f"gnt-instance modify --online {instance.name}",
            )
        node = view.config.node(instance.primary_node)
        for disk in view.config.disks_of(instance):
            check_reach(view, disk, node)

    def warnings(self, view: View) -> Iterator[str]:
        """Name the hypervisor parameters that will have no effect."""
        instance = self.instance(view)
        given = calls.hvparams(view.config, instance)
        return hvparams.warnings(instance.hypervisor, given)

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach the disks, start the guest, record it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        if runs(view, instance):
            yield from _wake(view, instance, node)
            yield from recorded(view, instance, "up", active=True)
        else:
            yield from start_tasks(view, instance, node)


class InstanceShutdown(OnInstance, frozen=True, kw_only=True):
    """Power an instance down.

    Attributes
    ----------
    timeout
        Seconds that the guest gets; then its process is ended.
    """

    op_id = "OP_INSTANCE_SHUTDOWN"

    timeout: float = PATIENCE
    force: Annotated[bool, Idle("there is nothing to insist on")] = False
    ignore_offline_nodes: Annotated[
        bool, Unsupported("what still runs on an offline node is not known")
    ] = False
    no_remember: Annotated[
        bool, Unsupported("the state of an instance is always recorded")
    ] = False
    admin_state_source: Annotated[str, Idle("who asked is not recorded")] = "admin"

    def tasks(self, view: View) -> Iterator[Task]:
        """Stop the guest, detach the disks, record it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        disks = view.config.disks_of(instance)
        if runs(view, instance):
            yield calls.stop(view.config, instance, disks, node, self.timeout)
        yield from detach_all(view, instance, node)
        yield from recorded(view, instance, "down", active=False)


class InstanceReboot(OnInstance, frozen=True, kw_only=True):
    """Reboot an instance: in place, or (``full``) with a new process."""

    op_id = "OP_INSTANCE_REBOOT"

    reboot_type: Literal["soft", "hard", "full"] = "hard"
    ignore_secondaries: Annotated[bool, Moot("there are no secondaries")] = False
    shutdown_timeout: float = PATIENCE

    def tasks(self, view: View) -> Iterator[Task]:
        """Reset the guest, or stop and start it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        disks = view.config.disks_of(instance)
        if not runs(view, instance):
            yield from start_tasks(view, instance, node)
        elif self.reboot_type == "full":
            yield calls.stop(view.config, instance, disks, node, self.shutdown_timeout)
            yield calls.start(view.config, instance, disks, node)
        else:
            yield Run(
                what=f"reset {instance.name} on {node.name}",
                node=node.uuid,
                do=calls.guest_call(view.config, "instance.reboot", instance, disks),
            )


class InstanceActivateDisks(OnInstance, frozen=True, kw_only=True):
    """Attach an instance's disks on its node without starting it."""

    op_id = "OP_INSTANCE_ACTIVATE_DISKS"

    ignore_size: Annotated[bool, Moot("no size is compared")] = False
    wait_for_sync: Annotated[bool, Moot("no template mirrors a disk by itself")] = False

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach, and record it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        yield from attach_all(view, view.config.disks_of(instance), node)
        yield from recorded(view, instance, instance.admin_state, active=True)

    def result(self, view: View, results: Sequence[Any]) -> list[list[str]]:
        """Return node, slot and device or URI of each disk."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        found = []
        for slot, where in zip(range(len(instance.disks)), results, strict=False):
            uris = sorted((where or {}).get("uris", {}).values())
            reached = (where or {}).get("path") or next(iter(uris), "")
            found.append([node.name, f"disk/{slot}", reached])
        return found


class InstanceDeactivateDisks(OnInstance, frozen=True, kw_only=True):
    """Detach the disks of an instance that does not run."""

    op_id = "OP_INSTANCE_DEACTIVATE_DISKS"

    force: Annotated[
        bool, Idle("the disks of a guest that runs are never detached")
    ] = False

    def check(self, view: View) -> None:
        """Refuse while it runs."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        if runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is running: its disks are in use",
                hint=f"gnt-instance shutdown {instance.name}",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Detach, and record it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        yield from detach_all(view, instance, node)
        yield from recorded(view, instance, instance.admin_state, active=False)
