# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance startup``, ``shutdown`` and ``reboot``; and its disks without it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from msgspec.structs import replace

from moorage import backend
from moorage.errors import WrongState
from moorage.jobs import Lock, Operation, Question, Run, Task, View, commit
from moorage.jobs.unread import Idle, Unsupported
from moorage.model import Change, Claim, Disk, Instance, Node, hvparams, successor
from moorage.ops import copies, node_tasks
from moorage.ops.disk_access import ask_reach, check_reach
from moorage.ops.instance import memory
from moorage.ops.instance.base import (
    ask,
    attach_all,
    check_answers,
    check_usable,
    detach_all,
    hold,
    put_down,
)
from moorage.ops.liveness import (
    ask_elsewhere,
    check_nowhere_else,
    guest,
    holds,
    runs,
)
from moorage.protocol import RebootGuest, StartGuest

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
        yield from hold(view.config, self.instance(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs."""
        yield from ask(self.instance(view))

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent, or with a quarantined disk."""
        check_usable(view, self.instance(view))


def recorded(
    view: View,
    instance: Instance,
    state: str,
    *,
    active: bool,
    source: str | None = None,
) -> list[Task]:
    """Return the task that records a state, or none if it is recorded already.

    Parameters
    ----------
    source
        Who wants it; None for whoever wanted what it is.
    """
    source = source or instance.admin_state_source
    known = (instance.admin_state, instance.disks_active, instance.admin_state_source)
    if known == (state, active, source):
        return []
    new = successor(
        instance,
        view.now,
        admin_state=state,
        disks_active=active,
        admin_state_source=source,
    )
    change = Change((*_seen(view, instance, active=active), new))
    what = f"record {instance.name} as {state}"
    return [commit(what, change, view.config.before(change))]


def _seen(view: View, instance: Instance, *, active: bool) -> Iterator[Disk]:
    """Yield the disks that the instance's node has held for the first time."""
    home = view.config.node(instance.primary_node)
    if active == instance.disks_active or home.offline:
        return
    for disk in view.config.disks_of(instance):
        if disk.last_node != home.uuid:
            yield successor(disk, view.now, last_node=home.uuid)


def start_tasks(
    view: View,
    instance: Instance,
    node: Node,
    *,
    remember: bool = True,
    alone: bool = False,
) -> Iterator[Task]:
    """Yield the tasks that bring a guest up.

    Parameters
    ----------
    instance
        As it is to run.
    remember
        Whether it is to run from now on; or else only until it stops.
    alone
        Whether it is to run although second copies of its disks cannot follow.
    """
    disks = view.config.disks_of(instance)
    held = holds(view, instance)
    yield from attach_all(view, disks, node, held=held, alone=alone)
    yield node_tasks.start(view.config, instance, disks, node)
    yield from started(view, view.config.instance(instance.uuid), remember=remember)


def _wake(view: View, instance: Instance, node: Node) -> Iterator[Task]:
    """Yield the task that lets a guest go on which stands still; nothing undoes it."""
    found = guest(view, instance)
    if found and found.state == "paused":
        disks = view.config.disks_of(instance)
        yield Run(
            what=f"wake {instance.name} on {node.name}",
            node=node.uuid,
            do=StartGuest(
                **node_tasks.of_whole(view.config, instance, node), disks=tuple(disks)
            ),
        )


def started(view: View, instance: Instance, *, remember: bool = True) -> Iterator[Task]:
    """Yield the task that records a start, if it is to be remembered."""
    if remember:
        yield from recorded(view, instance, "up", active=True, source="admin")
    else:
        yield from recorded(view, instance, instance.admin_state, active=True)


def check_online(instance: Instance) -> None:
    """Raise `WrongState` if somebody marked the instance offline."""
    if instance.admin_state == "offline":
        raise WrongState(
            f"instance {instance.name} is marked offline",
            hint=f"gnt-instance modify --online {instance.name}",
        )


class Starting(OnInstance, frozen=True, kw_only=True):
    """An operation that may bring a guest up.

    Attributes
    ----------
    ignore_capacity
        Whether it may start on a node that has not the memory.
    """

    plans = True

    ignore_capacity: bool = False

    def as_it_runs(self, view: View) -> Instance:
        """Return the instance as it is to run."""
        return self.instance(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask where it runs, and whether its node has the memory and its disks."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        yield from OnInstance.questions(self, view)
        yield from ask_elsewhere(view.config, instance)
        yield from ask_reach(view.config, view.config.disks_of(instance), node)
        yield from memory.ask(view, instance)

    def check(self, view: View) -> None:
        """Refuse what cannot run, should not run, or runs elsewhere."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        check_online(instance)
        check_nowhere_else(view, instance)
        if not runs(view, instance):
            node = view.config.node(instance.primary_node)
            for disk in view.config.disks_of(instance):
                check_reach(view, disk, node)
            if not self.ignore_capacity:
                memory.check_start(view, self.as_it_runs(view))

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the memory, if a guest is to start."""
        instance = self.instance(view)
        if not (_is_off(view, instance) or runs(view, instance)):
            yield memory.claim(view, self.as_it_runs(view))


class InstanceStartup(Starting, frozen=True, kw_only=True):
    """Start an instance; one that stands still goes on, if it can.

    Attributes
    ----------
    hvparams, beparams
        For this run of the guest only.
    no_remember
        Leave on record what it was: a guest that ends is not missed.
    ignore_offline_nodes
        Where the node is marked offline, record only that it should run.
    force
        Start it although the second copy of a mirrored disk cannot follow.
    """

    op_id = "OP_INSTANCE_STARTUP"

    force: bool = False
    startup_paused: Annotated[bool, Unsupported("a guest begins to run at once")] = (
        False
    )
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    no_remember: bool = False
    ignore_offline_nodes: bool = False

    def check(self, view: View) -> None:
        """Refuse what cannot run."""
        instance = self.instance(view)
        hvparams.check(instance.hypervisor, self.hvparams)
        backend.check(self.beparams)
        if self.ignore_offline_nodes and _is_off(view, instance):
            check_online(instance)
        else:
            Starting.check(self, view)

    def warnings(self, view: View) -> Iterator[str]:
        """Say what has no effect: parameters of the hypervisor's, and others."""
        instance = self.instance(view)
        given = node_tasks.hvparams(view.config, instance) | self.hvparams
        yield from hvparams.warnings(instance.hypervisor, given)
        if self.ignore_offline_nodes and _is_off(view, instance):
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
        node = view.config.node(instance.primary_node)
        if node.offline:
            yield from recorded(view, instance, "up", active=instance.disks_active)
        elif runs(view, instance):
            yield from _wake(view, instance, node)
            yield from started(view, instance, remember=not self.no_remember)
        else:
            now, kept = self.as_it_runs(view), not self.no_remember
            yield from start_tasks(view, now, node, remember=kept, alone=self.force)


class InstanceShutdown(OnInstance, frozen=True, kw_only=True):
    """Power an instance down.

    Attributes
    ----------
    timeout
        Seconds that the guest gets; then its process is ended.
    force
        Also one that is marked offline, which it stays.
    ignore_offline_nodes
        Where the node is marked offline, record only that it should not run.
    no_remember
        Leave on record that it should run.
    admin_state_source
        Who wants it: ``admin``, or ``user`` for the guest's own.
    """

    op_id = "OP_INSTANCE_SHUTDOWN"

    timeout: float = PATIENCE
    force: bool = False
    ignore_offline_nodes: bool = False
    no_remember: bool = False
    admin_state_source: Literal["admin", "user"] = "admin"

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent, and one that is marked.

        A disk in quarantine does not keep its guest up: it is let go, not used.
        """
        instance = self.instance(view)
        if not self.force:
            check_online(instance)
        if not (self.ignore_offline_nodes and _is_off(view, instance)):
            check_answers(view, instance)

    def warnings(self, view: View) -> Iterator[str]:
        """Say what is not done."""
        instance = self.instance(view)
        if instance.admin_state == "offline":
            yield f"instance {instance.name} is marked offline, and stays so"
        if _is_off(view, instance):
            yield "the node is marked offline: the instance is recorded as down only"

    def tasks(self, view: View) -> Iterator[Task]:
        """Stop the guest, detach the disks, record it."""
        instance = self.instance(view)
        if not _is_off(view, instance):
            node = view.config.node(instance.primary_node)
            yield from put_down(view, instance, node, self.timeout)
        kept = self.no_remember or instance.admin_state == "offline"
        state = instance.admin_state if kept else "down"
        source = instance.admin_state_source if kept else self.admin_state_source
        yield from recorded(view, instance, state, active=False, source=source)


def _is_off(view: View, instance: Instance) -> bool:
    return view.config.node(instance.primary_node).offline


class InstanceReboot(Starting, frozen=True, kw_only=True):
    """Reboot an instance: in place, or (``full``) with a new process and its disks.

    Attributes
    ----------
    ignore_secondaries
        Start it although the second copy of a mirrored disk cannot follow.
    """

    op_id = "OP_INSTANCE_REBOOT"

    reboot_type: Literal["soft", "hard", "full"] = "hard"
    ignore_secondaries: bool = False
    shutdown_timeout: float = PATIENCE

    def tasks(self, view: View) -> Iterator[Task]:
        """Reset the guest, or stop and start it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        disks = view.config.disks_of(instance)
        if not runs(view, instance):
            alone = self.ignore_secondaries
            yield from start_tasks(view, instance, node, alone=alone)
        elif self.reboot_type == "full":
            yield node_tasks.stop(
                view.config, instance, disks, node, self.shutdown_timeout
            )
            yield from detach_all(view, instance, node)
            alone = self.ignore_secondaries
            yield from attach_all(view, disks, node, alone=alone)
            yield node_tasks.start(view.config, instance, disks, node)
        else:
            yield Run(
                what=f"reset {instance.name} on {node.name}",
                node=node.uuid,
                do=RebootGuest(**node_tasks.of_guest(instance), disks=tuple(disks)),
            )


class InstanceActivateDisks(OnInstance, frozen=True, kw_only=True):
    """Attach an instance's disks on its node without starting it.

    Attributes
    ----------
    ignore_size
        Take devices that have another size than their records say.
    wait_for_sync
        Whether the job lasts until both copies of mirrored disks are the same.
    """

    op_id = "OP_INSTANCE_ACTIVATE_DISKS"

    ignore_size: bool = False
    wait_for_sync: bool = False

    def questions(self, view: View) -> Iterator[Question]:
        """Ask where it runs."""
        yield from OnInstance.questions(self, view)
        yield from ask_elsewhere(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse while another node has the disks for its guest."""
        OnInstance.check(self, view)
        check_nowhere_else(view, self.instance(view))

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach, and record it."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        held, disks = holds(view, instance), view.config.disks_of(instance)
        yield from attach_all(
            view, disks, node, held=held, ignore_size=self.ignore_size
        )
        yield from recorded(view, instance, instance.admin_state, active=True)
        for disk in disks if self.wait_for_sync else ():
            yield from copies.wait(view.config, disk, node)

    def result(self, view: View, results: Sequence[Any]) -> list[list[str]]:
        """Return node, slot and device or URI of each disk."""
        instance = self.instance(view)
        node = view.config.node(instance.primary_node)
        found, at = [], 0
        for slot, disk in enumerate(view.config.disks_of(instance)):
            at += len(copies.peers(view.config, disk, node))  # they came first
            where, at = results[at], at + 1
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
        check_answers(view, self.instance(view))
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
        for disk in view.config.disks_of(instance):
            yield from copies.let_go(view.config, disk, node)
        yield from recorded(view, instance, instance.admin_state, active=False)
