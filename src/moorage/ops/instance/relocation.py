# SPDX-License-Identifier: BSD-2-Clause
"""Going to another node: which ones can be it, and what changes when it is."""

from collections.abc import Iterator
from typing import Any

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Lock, Question, View, once
from moorage.model import Claim, Disk, Instance, Node, successor
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import rescue
from moorage.ops.instance.base import OnInstance
from moorage.ops.planning import advice, cpu_models, links, message, placement, policy
from moorage.ops.planning.allocators import Allocator, Chooser
from moorage.ops.volumes import behind, copies, pairs, pools
from moorage.ops.volumes.disk_access import ask_reach, check_reach
from moorage.storage import TEMPLATES
from moorage.units import Mib


class ToAnotherNode(OnInstance, Chooser, frozen=True, kw_only=True):
    """An operation that takes an instance to another node.

    Attributes
    ----------
    target_node
        Name of the node; without one the planner chooses.
    ignore_ipolicy
        Whether the policy of another node group does not count.
    ignore_capacity
        Whether a node that is named may get more than its memory holds.
    """

    target_node: str | None = None
    iallocator: Allocator = None
    ignore_ipolicy: bool = False
    ignore_capacity: bool = False

    def target(self, view: View) -> Node:
        """Return the node to go to; raise `Refused` if it cannot be one."""
        instance = self.instance(view)
        if self.target_node and self.iallocator:
            raise BadInput(
                "Do not specify both, iallocator and target node", hint="drop -I or -n"
            )
        named = self._named(view)
        if named is None:
            return self._chosen(view)
        return _checked(view, instance, named)

    def _named(self, view: View) -> Node | None:
        """Return the node to go to, where it is not for the planner to choose.

        Mirrored disks leave no choice: their guest goes where their second copies are.
        """
        secondary = copies.secondary(view.config, self.instance(view))
        if self.target_node:
            return view.config.node(self.target_node)
        return secondary

    def chooses(self, view: View) -> bool:
        """Whether nobody named a node, nor second copies do."""
        return self._named(view) is None

    def allocator_request(self, view: View) -> dict[str, Any]:
        """Return what an allocator is asked."""
        instance = self.instance(view)
        return message.relocate(view, instance, view.config.home(instance))

    @once
    def _chosen(self, view: View) -> Node:
        instance, able = self.instance(view), self._able(view)
        named = None
        if who := self.allocator(view):
            what = f"instance {instance.name}"
            (node,) = advice.nodes(view, who, what, able, 1)
            named = {instance.uuid: node}
        to, stuck = placement.elsewhere(view, [instance], able, named)
        if stuck:
            raise placement.nowhere(instance.name, stuck[instance.uuid])
        return to[instance.uuid]

    def beyond(self, _view: View) -> int:
        """Return the MiB that it comes with, where those are more than on record."""
        return 0

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the memory on the target."""
        name, memory = self.instance(view).name, Mib(self.beyond(view))
        yield Claim(node=self.target(view).uuid, instance=name, memory=memory)

    def candidates(self, view: View) -> list[Node]:
        """Return the nodes that it may go to: the named one, or those of its group."""
        if self._named(view):
            return [self.target(view)]
        home = view.config.home(self.instance(view))
        hosts = placement.hosts(view.config, [view.config.group(home.group)])
        return [node for node in hosts if node != home]

    def _able(self, view: View) -> list[Node]:
        """Return the nodes that reach its disks; else raise the last reason."""
        name = self.instance(view).name
        return placement.able(
            self.candidates(view),
            lambda node: self._check_able(view, node),
            WrongState(f"there is no other node for instance {name} in its group"),
        )

    def _check_able(self, view: View, node: Node) -> None:
        """Raise unless a node answers, reaches the disks, and holds the whole guest.

        The planner, which chooses among those that can, goes by what is on record.
        """
        self._check_reach(view, node)
        memory = self.beyond(view)
        if memory and not self.ignore_capacity:
            placement.check_move(view, self.instance(view), node, memory)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks; share its node and those it may go to."""
        yield from OnInstance.locks(self, view)
        for node in self.candidates(view):
            yield Lock("node", node.uuid, shared=True)
        disks = view.config.disks_of(self.instance(view))
        yield from pools.hold(disk.pool for disk in disks)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask where it runs, and whether the others reach its disks."""
        instance = self.instance(view)
        yield from OnInstance.questions(self, view)
        for node in self.candidates(view):
            yield node_tasks.guest_on(node.uuid, instance)
            yield from ask_reach(view.config, view.config.disks_of(instance), node)
            yield from self.ask_processor(view, node)
        yield from pairs.ask(view.config, view.config.disks_of(instance))
        if self._named(view):
            yield placement.room_on(view.config, self.target(view))
        else:
            group = view.config.group_of(instance)
            yield from placement.ask_room(view.config, view.config.nodes_in(group))
            yield from self.ask_for_allocator(view)

    def check_target(self, view: View) -> None:
        """Raise unless the target answers, reaches every disk, and takes the guest."""
        instance, node = self.instance(view), self.target(view)
        self._check_reach(view, node)
        if not self._named(view):
            return
        home = view.config.home(instance)
        if node.group != home.group and not self.ignore_ipolicy:
            group = view.config.group(node.group)
            sizes = policy.sizes_of(view.config, instance)
            policy.check(view.config, group, instance.name, sizes)
        if not self.ignore_capacity:
            placement.check_move(view, instance, node, self.beyond(view))

    def check_current(self, view: View) -> None:
        """Raise unless the copies on the target are known to be up to date."""
        instance = self.instance(view)
        disks, active = view.config.disks_of(instance), instance.disks_active
        home = view.config.home(instance)
        behind.check_current(view, disks, self.target(view), home, active=active)

    def _check_reach(self, view: View, node: Node) -> None:
        view.answer(node_tasks.providers_on(node.uuid))
        for disk in view.config.disks_of(self.instance(view)):
            check_reach(view, disk, node)
        links.check(view, node, self.instance(view).nics)
        self.check_processor(view, node)

    def ask_processor(self, view: View, node: Node) -> Iterator[Question]:
        """Ask a node for its processor, if the instance is to start there."""
        yield from cpu_models.ask_start(view.config, self.instance(view), node)

    def check_processor(self, view: View, node: Node) -> None:
        """Raise `WrongState` if the instance should run, and cannot start on a node."""
        if self.instance(view).admin_state == "up":
            cpu_models.check_start(view, self.instance(view), node)


def _checked(view: View, instance: Instance, node: Node) -> Node:
    """Return a node that an instance can go to, or raise `Refused`."""
    if node.uuid == instance.primary_node:
        raise WrongState(f"instance {instance.name} is on node {node.name} already")
    secondary = copies.secondary(view.config, instance)
    if secondary and node != secondary:
        raise WrongState(
            f"instance {instance.name} has mirrored disks: it can go to its secondary "
            f"node {secondary.name}, and not to {node.name}",
            hint=f"first: gnt-instance replace-disks -n {node.name} {instance.name}",
        )
    placement.check_takes(node)
    return node


def check_mobile(view: View, instance: Instance, verb: str) -> None:
    """Raise `NotSupported` if an attached disk keeps its instance on one node."""
    off = view.config.home(instance).offline
    for disk in view.config.disks_of(instance):
        if not TEMPLATES[disk.dev_type].capabilities.facts.movable:
            raise NotSupported(
                f"Instance's disk layout '{disk.dev_type}' does not allow {verb} "
                f"(disk {disk.label} of {instance.name})",
                hint=rescue(view.config, instance) if off else "",
                disk=disk.uuid,
                instance=instance.name,
            )


def moved(
    view: View,
    instance: Instance,
    node: Node,
    *,
    active: bool = True,
    lost: bool = False,
) -> tuple[Disk | Instance, ...]:
    """Return an instance as it is on a node, after its disks, which are one epoch on.

    Parameters
    ----------
    active
        Whether the disks will be attached there.
    lost
        Whether copies on the node that it leaves miss what is written from now on.
    """
    home = view.config.home(instance)
    disks = tuple(
        successor(
            disk,
            view.now,
            epoch=disk.epoch + 1,
            group=node.group,
            behind=home.uuid
            if lost and copies.keeps(disk, home)
            else behind.known(view, disk, home),
        )
        for disk in view.config.disks_of(instance)
    )
    there = {"primary_node": node.uuid, "disks_active": active}
    return *disks, successor(instance, view.now, **there)


def disks_in(moved: tuple[Disk | Instance, ...]) -> list[Disk]:
    """Return the disks of an instance that moved."""
    return [one for one in moved if isinstance(one, Disk)]
