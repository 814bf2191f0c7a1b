# SPDX-License-Identifier: BSD-2-Clause
"""Emptying a node: one job an instance, all to one target node."""

from collections.abc import Iterator
from typing import Any

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Lock, Operation, Question, View
from moorage.model import Config, Instance, Node
from moorage.ops.reach import able
from moorage.storage import Mirror

from .residents import guests_on

Opcode = dict[str, Any]


def target(
    config: Config, source: Node, named: str | None, allocator: str | None
) -> Node:
    """Return the node that instances of `source` go to.

    Raises
    ------
    BadInput
        If both a node and an allocator are named, or none, or the node itself.
    NotSupported
        If an allocator is named: there is none.
    WrongState
        If the node takes no instances.
    """
    if named and allocator:
        raise BadInput(
            "Do not specify both, iallocator and target node", hint="drop -I or -n"
        )
    if allocator:
        raise NotSupported(
            f"the cluster has no allocator '{allocator}' that could choose a node",
            hint="say where the instances go: -n NODE",
        )
    if not named:
        raise BadInput(
            f"no node was named for the instances of node {source.name}, and the "
            "cluster has no allocator",
            hint="say where they go: -n NODE",
        )
    node = config.node(named)
    _check_takes(source, node)
    return node


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
        if able(disk).mirror is not Mirror.EXTERNAL:
            raise WrongState(
                f"instance {instance.name} cannot move: disk {disk.label} of template "
                f"'{disk.dev_type}' stays on its node",
                hint=f"gnt-instance info {instance.name}",
                instance=instance.name,
                disk=disk.uuid,
            )


class Moving(Operation, frozen=True, kw_only=True):
    """What all operations that empty a node have in common."""

    node_name: str
    iallocator: str | None = None

    def node(self, view: View) -> Node:
        """Return the node to empty."""
        return view.config.node(self.node_name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the node: the jobs take what they need."""
        yield Lock("node", self.node(view).uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask which instances run."""
        if not self.node(view).offline:
            yield guests_on(self.node(view))


def migrate(instance: Instance, to: Node) -> list[Opcode]:
    """Return the job that migrates an instance."""
    return [_opcode("OP_INSTANCE_MIGRATE", instance, to)]


def failover(instance: Instance, to: Node) -> list[Opcode]:
    """Return the job that fails an instance over."""
    return [_opcode("OP_INSTANCE_FAILOVER", instance, to)]


def _opcode(op_id: str, instance: Instance, to: Node) -> Opcode:
    return {"OP_ID": op_id, "instance_name": instance.name, "target_node": to.name}
