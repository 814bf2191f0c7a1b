# SPDX-License-Identifier: BSD-2-Clause
"""What brings a guest up, and what is recorded of it."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Planner, Question, Run, Sought, Task, View
from moorage.model import Claim, Disk, Instance, Node, successor
from moorage.ops.asking import node_tasks
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import check_nowhere_else, guest, holds, runs, seek
from moorage.ops.instance import memory
from moorage.ops.instance.base import OnInstance, attach_all
from moorage.ops.planning import cpu_models, links, processors
from moorage.ops.volumes import behind, copies
from moorage.ops.volumes.disk_access import ask_reach, check_reach
from moorage.protocol import StartGuest


def recorded(
    view: View,
    instance: Instance,
    state: str,
    *,
    active: bool,
    source: str | None = None,
    alone: bool = False,
) -> list[Task]:
    """Return the task that records a state, or none if it is recorded already.

    Parameters
    ----------
    source
        Who wants it; None for whoever wanted what it is.
    alone
        Whether second copies of its disks may not follow.
    """
    source = source or instance.admin_state_source
    known = (instance.admin_state, instance.disks_active, instance.admin_state_source)
    disks = tuple(_seen(view, instance, active=active, alone=alone))
    if known == (state, active, source) and not disks:
        return []
    new = successor(
        instance,
        view.now,
        admin_state=state,
        disks_active=active,
        admin_state_source=source,
    )
    return [view.record(f"record {instance.name} as {state}", *disks, new)]


def _seen(
    view: View, instance: Instance, *, active: bool, alone: bool
) -> Iterator[Disk]:
    """Yield the disks that the instance's node has held for the first time.

    And the mirrored ones of which another copy is behind than was known.
    """
    home = view.config.home(instance)
    if home.offline:
        return
    held = active != instance.disks_active
    for disk in view.config.disks_of(instance):
        last = home.uuid if held else disk.last_node
        off = copies.lonely(view.config, disk, home)
        lags = behind.known(view, disk, home, alone=active and (alone or off))
        if (disk.last_node, disk.behind) != (last, lags):
            yield successor(disk, view.now, last_node=last, behind=lags)


def start_tasks(
    view: View,
    instance: Instance,
    node: Node,
    *,
    remember: bool = True,
    alone: bool = False,
    paused: bool = False,
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
    paused
        Whether it stands still before its first instruction.
    """
    disks = view.config.disks_of(instance)
    held = holds(view, instance)
    yield from attach_all(view, disks, node, held=held, alone=alone)
    yield guest_tasks.start(view.config, instance, disks, node, paused=paused)
    yield from started(
        view, view.config.instance(instance.uuid), remember=remember, alone=alone
    )


def wake(view: View, instance: Instance, node: Node) -> Iterator[Task]:
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


def started(
    view: View, instance: Instance, *, remember: bool = True, alone: bool = False
) -> Iterator[Task]:
    """Yield the task that records a start, if it is to be remembered."""
    state, source = instance.admin_state, None
    if remember:
        state, source = "up", "admin"
    yield from recorded(view, instance, state, active=True, source=source, alone=alone)


def check_online(instance: Instance) -> None:
    """Raise `WrongState` if somebody marked the instance offline."""
    if instance.admin_state == "offline":
        raise WrongState(
            f"instance {instance.name} is marked offline",
            hint=f"gnt-instance modify --online {instance.name}",
        )


def is_off(view: View, instance: Instance) -> bool:
    """Whether the instance's node is marked offline."""
    return view.config.home(instance).offline


class Starting(OnInstance, Planner, frozen=True, kw_only=True):
    """An operation that may bring a guest up.

    Attributes
    ----------
    ignore_capacity
        Whether it may start on a node that has not the memory.
    """

    ignore_capacity: bool = False

    def goes_alone(self) -> bool:
        """Whether it starts although second copies cannot follow, or be asked."""
        return False

    def as_it_runs(self, view: View) -> Instance:
        """Return the instance as it is to run."""
        return self.instance(view)

    def begins(self, view: View) -> bool:
        """Whether a guest is to start: one that runs is left alone."""
        return not runs(view, self.instance(view))

    def takes_disks(self, view: View) -> bool:
        """Whether the node is to take its disks."""
        return self.begins(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask where it runs, and whether its node has the memory and its disks."""
        instance = self.instance(view)
        node = view.config.home(instance)
        yield from OnInstance.questions(self, view)
        yield from ask_reach(view.config, view.config.disks_of(instance), node)
        yield from memory.ask(view, instance)
        yield from cpu_models.ask_start(view.config, self.as_it_runs(view), node)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse what cannot run, should not run, or runs elsewhere."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        check_online(instance)
        check_nowhere_else(view, instance)
        node = view.config.home(instance)
        for disk in view.config.disks_of(instance) if self.takes_disks(view) else ():
            check_reach(view, disk, node)
            if not self.goes_alone():
                copies.check_alone(view.config, disk, node)
        if self.begins(view):
            links.check(view, node, instance.nics)
            processors.check_starts(view.config, self.as_it_runs(view))
            cpu_models.check_start(view, self.as_it_runs(view), node)
            if not self.ignore_capacity:
                had = memory.given_back(view, instance, guest(view, instance))
                memory.check_start(view, self.as_it_runs(view), given_back=had)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the memory, if a guest is to start."""
        instance = self.instance(view)
        if not (is_off(view, instance) or runs(view, instance)):
            yield memory.claim(view, self.as_it_runs(view))
