# SPDX-License-Identifier: BSD-2-Clause
"""What operations on instances share: who to lock, whom to ask, how to find a disk."""

from collections.abc import Iterable, Iterator

from moorage.errors import BadInput, NotFound, WrongState
from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.model import Config, Disk, Instance, Node
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import rescue
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import check_known, holds, runs
from moorage.ops.volumes import behind, copies
from moorage.ops.volumes.disk_access import check_sound
from moorage.units import is_whole

SHUTDOWN_TIMEOUT = 120.0
"""Seconds that a guest gets to power down, as in Ganeti."""


def hold(config: Config, instance: Instance) -> Iterator[Lock]:
    """Hold an instance with its disks; share its nodes."""
    yield Lock("node", instance.primary_node, shared=True)
    yield from copies.hold(config, config.disks_of(instance))
    yield Lock("instance", instance.uuid)
    for uuid in instance.disks:
        yield Lock("disk", uuid)


def ask(instance: Instance) -> Iterator[Question]:
    """Ask whether the instance runs."""
    yield node_tasks.guest_on(instance.primary_node, instance)


def home(config: Config, instance: Instance) -> Node:
    """Return the instance's node; raise `WrongState` if it is marked offline."""
    node = config.home(instance)
    if node.offline:
        raise WrongState(
            f"node {node.name} of instance {instance.name} is marked offline",
            hint=rescue(config, instance),
            node=node.name,
        )
    return node


def check_answers(view: View, instance: Instance) -> None:
    """Raise `Refused` unless the instance's node answers."""
    home(view.config, instance)
    check_known(view, instance)


def check_usable(view: View, instance: Instance) -> None:
    """Raise `Refused` unless the node answers and no disk is quarantined."""
    check_answers(view, instance)
    for disk in view.config.disks_of(instance):
        check_sound(disk)


def attach_all(
    view: View,
    disks: list[Disk],
    node: Node,
    *,
    held: bool = False,
    alone: bool = False,
) -> Iterator[Task]:
    """Attach disks on a node, each open for it alone (:func:`copies.attach`)."""
    for disk in disks:
        yield from copies.attach(view.config, disk, node, held=held, alone=alone)


def detach_all(view: View, instance: Instance, node: Node) -> Iterator[Task]:
    """Detach an instance's disks on its node."""
    held = holds(view, instance)
    for disk in view.config.disks_of(instance):
        yield from copies.detach(view.config, disk, node, held=held)


def check_at_rest(view: View, instance: Instance, verb: str) -> None:
    """Raise `WrongState` if the guest runs, or should; a verb is as "renamed"."""
    if runs(view, instance) or instance.admin_state == "up":
        raise WrongState(
            f"instance {instance.name} is running, or should be: it can be {verb} "
            "while it is down",
            hint=f"gnt-instance shutdown {instance.name}",
            instance=instance.name,
        )


def check_detached(view: View, instance: Instance) -> None:
    """Raise `WrongState` if the instance's disks are attached."""
    if holds(view, instance):
        raise WrongState(
            f"the disks of instance {instance.name} are attached",
            hint=f"gnt-instance deactivate-disks {instance.name}",
        )


def with_disks(
    view: View, instance: Instance, node: Node, work: Iterable[Task]
) -> Iterator[Task]:
    """Yield work on the instance's disks, attached for it if they are not so already.

    They are let go of at the end, come what may.
    """
    held, disks = holds(view, instance), view.config.disks_of(instance)
    for disk in disks:
        copies.check_alone(view.config, disk, node)
    yield from behind.recorded(view, disks, node)
    yield from attach_all(view, disks, node, held=held)
    yield from work
    for disk in () if held else disks:
        yield from copies.let_go(view.config, disk, node)


def put_down(
    view: View, instance: Instance, node: Node, patience: float
) -> Iterator[Task]:
    """Stop a guest for good, and let go of its disks: from there on only forward."""
    disks = view.config.disks_of(instance)
    if runs(view, instance):
        yield guest_tasks.stop(view.config, instance, disks, node, patience, final=True)
    for disk in disks:
        yield from copies.let_go(view.config, disk, node)


def find_disk(config: Config, instance: Instance, ref: str | int) -> Disk:
    """Return a disk of an instance by slot, name or uuid; raise `NotFound` for none."""
    disks = config.disks_of(instance)
    text = str(ref)
    if text == "-1" and disks:
        return disks[-1]
    if is_whole(text) and 0 <= int(text) < len(disks):
        return disks[int(text)]
    named = [disk for disk in disks if text in (disk.uuid, disk.name)]
    if len(named) > 1:
        raise BadInput(f"instance {instance.name} has several disks named '{text}'")
    if not named:
        told = ", ".join(f"{n} ({disk.label})" for n, disk in enumerate(disks))
        raise NotFound(
            f"instance {instance.name} has no disk '{text}': it has {told or 'none'}"
        )
    return named[0]


class OnInstance(Operation, frozen=True, kw_only=True):
    """An operation on one instance, its disks and its node.

    Attributes
    ----------
    instance_name
        Name or uuid of the instance.
    """

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
        yield from behind.ask(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent, or with a quarantined disk."""
        check_usable(view, self.instance(view))
