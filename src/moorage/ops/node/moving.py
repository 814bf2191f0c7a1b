# SPDX-License-Identifier: BSD-2-Clause
"""Emptying a node: one job an instance, to a node of its own or one for all."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Question, View
from moorage.model import Config, Instance, Node
from moorage.ops import placement
from moorage.storage import mirrored

from .residents import guests_on

Opcode = dict[str, Any]


def _check_takes(source: Node, node: Node) -> None:
    if node.uuid == source.uuid:
        raise BadInput(
            f"the instances of node {source.name} cannot move to the same node",
            hint="name another one: gnt-node list",
        )
    if node.offline or node.drained or not node.vm_capable:
        raise WrongState(
            f"node {node.name} takes no instances: it is offline, drained or not "
            "vm_capable",
            hint=f"gnt-node info {node.name}",
            node=node.name,
        )


def check_mobile(config: Config, instance: Instance) -> None:
    """Raise `WrongState` if a disk keeps the instance where it is."""
    for disk in config.disks_of(instance):
        if disk.dev_type not in mirrored():
            raise WrongState(
                f"instance {instance.name} cannot move: disk {disk.label} of template "
                f"'{disk.dev_type}' stays on its node",
                hint=f"gnt-instance info {instance.name}",
                instance=instance.name,
                disk=disk.uuid,
            )


class Moving(Operation, frozen=True, kw_only=True):
    """What all operations that empty a node have in common.

    Attributes
    ----------
    iallocator
        Who chooses where the instances go; there is only ``hail``.
    """

    node_name: str
    iallocator: str | None = None

    @abstractmethod
    def wanted(self) -> str | None:
        """Return the name of the node that was named as the target, if one was."""

    def node(self, view: View) -> Node:
        """Return the node to empty."""
        return view.config.node(self.node_name)

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

    def targets(self, view: View, moving: Sequence[Instance]) -> dict[str, Node]:
        """Return where each of some instances goes, by uuid.

        Raises
        ------
        Refused
            If the named node cannot be it, or the planner finds no room.
        """
        name = self.wanted()
        if name and self.iallocator:
            raise BadInput(
                "Do not specify both, iallocator and target node", hint="drop -I or -n"
            )
        placement.check_allocator(self.iallocator)
        if name:
            to = view.config.node(name)
            _check_takes(self.node(view), to)
            return {one.uuid: to for one in moving}
        group = view.config.group(self.node(view).group)
        hosts = placement.hosts(view.config, [group])
        allowed = [node for node in hosts if node != self.node(view)]
        return placement.elsewhere(view, moving, allowed) if moving else {}


def migrate(instance: Instance, to: Node) -> list[Opcode]:
    """Return the job that migrates an instance."""
    return [_opcode("OP_INSTANCE_MIGRATE", instance, to)]


def failover(instance: Instance, to: Node) -> list[Opcode]:
    """Return the job that fails an instance over."""
    return [_opcode("OP_INSTANCE_FAILOVER", instance, to)]


def _opcode(op_id: str, instance: Instance, to: Node) -> Opcode:
    return {"OP_ID": op_id, "instance_name": instance.name, "target_node": to.name}
