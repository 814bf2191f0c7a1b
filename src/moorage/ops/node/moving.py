# SPDX-License-Identifier: BSD-2-Clause
"""Emptying a node: one job an instance, to a node of its own or one for all."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, View, once
from moorage.jobs.results import Following
from moorage.model import Config, Instance, Node
from moorage.ops.planning import advice, message, placement
from moorage.ops.planning.allocators import Allocator, Chooser
from moorage.ops.volumes.pools import check_used_in
from moorage.storage import TEMPLATES

from .base import OnNode
from .residents import guests_on, running

Opcode = dict[str, Any]


def _check_takes(source: Node, node: Node) -> None:
    if node.uuid == source.uuid:
        raise BadInput(
            f"the instances of node {source.name} cannot move to the same node",
            hint="name another one: gnt-node list",
        )
    if node.drained or not node.is_host:
        raise WrongState(
            f"node {node.name} takes no instances: it is offline, drained or not "
            "vm_capable",
            hint=f"gnt-node info {node.name}",
            node=node.name,
        )


def why_bound(config: Config, instance: Instance) -> str:
    """Return what keeps an instance where it is; empty when it can move."""
    for disk in config.disks_of(instance):
        if not TEMPLATES[disk.dev_type].capabilities.facts.movable:
            return f"disk {disk.label} of template '{disk.dev_type}' stays on its node"
    return ""


def why_not_to(config: Config, instance: Instance, to: Node) -> str:
    """Return what keeps an instance from a node that was named; empty if nothing."""
    try:
        for disk in config.disks_of(instance):
            check_used_in(config, disk, config.group(to.group))
    except WrongState as refusal:
        return refusal.message
    return ""


@dataclass(frozen=True, slots=True)
class Departure:
    """Who leaves a node, and who does not.

    Attributes
    ----------
    to
        Where each of those goes that can, by uuid.
    staying
        Why the others cannot, by name.
    """

    to: dict[str, Node]
    staying: dict[str, str]


class Leaving(Following, frozen=True, kw_only=True):
    """Which instances leave a node, by the jobs that follow.

    Attributes
    ----------
    stayed
        Why an instance stays, by its name.
    """

    stayed: dict[str, str]


class Moving(OnNode, Chooser, frozen=True, kw_only=True):
    """What all operations that empty a node have in common.

    Each instance gets a job of its own, so that one which cannot leave does not keep
    the others.
    """

    iallocator: Allocator = None

    @abstractmethod
    def wanted(self) -> str | None:
        """Return the name of the node that was named as the target, if one was."""

    @abstractmethod
    def leaving(self, view: View) -> list[Instance]:
        """Return the instances that are to leave."""

    @abstractmethod
    def move(self, view: View, instance: Instance, to: Node) -> list[Opcode]:
        """Return the job that takes one of them to another node."""

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the node: the jobs take what they need."""
        yield Lock("node", self.node(view).uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask which instances run; where nobody named a target, how much room is."""
        if not self.node(view).offline:
            yield guests_on(self.node(view))
        if not self.wanted():
            group = view.config.group(self.node(view).group)
            yield from placement.ask_room(view.config, view.config.nodes_in(group))
            yield from self.ask_for_allocator(view)

    def chooses(self, _view: View) -> bool:
        """Whether nobody named a node."""
        return not self.wanted()

    def allocator_request(self, view: View) -> dict[str, Any] | None:
        """Return what an allocator is asked; nothing where nobody can leave."""
        moving, _ = self._mobile(view)
        return message.evacuate(moving, "primary-only") if moving else None

    def check(self, view: View) -> None:
        """Refuse while nobody can tell what runs, and when nobody at all can leave."""
        running(view, self.node(view))
        departure = self.departure(view)
        if departure.staying and not departure.to:
            told = "; ".join(
                f"{name}: {why}" for name, why in departure.staying.items()
            )
            raise WrongState(
                f"no instance can leave node {self.node(view).name}: {told}",
                hint=f"gnt-node info {self.node(view).name}",
                stayed=departure.staying,
            )

    @once
    def departure(self, view: View) -> Departure:
        """Return who leaves, and where to."""
        moving, staying = self._mobile(view)
        to, stuck = self._targets(view, moving)
        names = {one.uuid: one.name for one in moving}
        return Departure(to, staying | {names[uuid]: stuck[uuid] for uuid in stuck})

    @once
    def _mobile(self, view: View) -> tuple[list[Instance], dict[str, str]]:
        """Return who can leave, and why the others cannot, by name."""
        leaving = self.leaving(view)
        bound = {one.name: why_bound(view.config, one) for one in leaving}
        moving = [one for one in leaving if not bound[one.name]]
        return moving, {name: why for name, why in bound.items() if why}

    def _targets(
        self, view: View, moving: Sequence[Instance]
    ) -> tuple[dict[str, Node], dict[str, str]]:
        name = self.wanted()
        if name and self.iallocator:
            raise BadInput(
                "Do not specify both, iallocator and target node", hint="drop -I or -n"
            )
        if name:
            to = view.config.node(name)
            _check_takes(self.node(view), to)
            why = {one.uuid: why_not_to(view.config, one, to) for one in moving}
            stuck = {uuid: told for uuid, told in why.items() if told}
            return dict.fromkeys(why.keys() - stuck.keys(), to), stuck
        group = view.config.group(self.node(view).group)
        hosts = placement.hosts(view.config, [group])
        allowed = [node for node in hosts if node != self.node(view)]
        if not moving:
            return {}, {}
        if who := self.allocator(view):
            found = advice.moves(view, who, moving, allowed)
            going = [one for one in moving if one.uuid in found.nodes]
            away, stuck = placement.elsewhere(view, going, allowed, found.nodes)
            return away, found.stuck | stuck
        return placement.elsewhere(view, moving, allowed)

    def _going(self, view: View) -> list[tuple[Instance, Node]]:
        to = self.departure(view).to
        return [(one, to[one.uuid]) for one in self.leaving(view) if one.uuid in to]

    def warnings(self, view: View) -> Iterator[str]:
        """Say who stays, and why."""
        for name, why in self.departure(view).staying.items():
            yield f"instance {name} stays on node {self.node(view).name}: {why}"

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return a job for each instance that can leave."""
        return [self.move(view, *one) for one in self._going(view)]

    def result(self, view: View, _results: Sequence[Any]) -> Leaving:
        """Return whom the jobs are for, in their order, and why the others stay."""
        names = tuple(one.name for one, _ in self._going(view))
        return Leaving(names=names, stayed=self.departure(view).staying)


def migrate(instance: Instance, to: Node) -> list[Opcode]:
    """Return the job that migrates an instance."""
    return [_opcode("OP_INSTANCE_MIGRATE", instance, to)]


def failover(instance: Instance, to: Node) -> list[Opcode]:
    """Return the job that fails an instance over."""
    return [_opcode("OP_INSTANCE_FAILOVER", instance, to)]


def _opcode(op_id: str, instance: Instance, to: Node) -> Opcode:
    return {"OP_ID": op_id, "instance_name": instance.name, "target_node": to.name}
