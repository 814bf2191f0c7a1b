# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node evacuate``: a node is emptied, whatever it takes."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.jobs import View
from moorage.model import Instance, Node
from moorage.model.caller import Role
from moorage.model.kinds import EvacuationMode
from moorage.ops.instance.replace_disks import mirrored_slots
from moorage.ops.planning.allocators import DEFAULT
from moorage.ops.volumes import copies

from .moving import Leaving, Moving, Opcode, failover, migrate
from .residents import running


class NodeEvacuate(Moving, frozen=True, kw_only=True):
    """Move all instances away: those that run migrate, the others fail over.

    Attributes
    ----------
    remote_node
        Where they go; the planner chooses a node for each without it.
    mode
        ``primary-only`` for instances that belong to the node, ``secondary-only`` for
        second copies of disks, ``all`` for both.
    early_release
        Whether old second copies go before the new ones are the same.
    """

    op_id = "OP_NODE_EVACUATE"
    role = Role.OPERATE

    remote_node: str | None = None
    mode: EvacuationMode = "all"
    early_release: bool = False

    def wanted(self) -> str | None:
        """Return the name of the node that was named."""
        return self.remote_node

    def leaving(self, view: View) -> list[Instance]:
        """Return everybody, but where only second copies are meant: there are none."""
        if self.mode == "secondary-only":
            return []
        return view.config.instances_on(self.node(view))

    def _mirrored(self, view: View) -> list[Instance]:
        """Return the instances of other nodes that have second copies here."""
        config, node = view.config, self.node(view)
        if self.mode == "primary-only":
            return []
        owners = filter(None, map(config.owner, config.mirrored_on(node)))
        found = {one.uuid: one for one in owners if one.primary_node != node.uuid}
        return list(found.values())

    def _copied(self, view: View, instance: Instance) -> Opcode:
        """Return the request that puts second copies on another node."""
        to: Opcode = (
            {"remote_node": self.remote_node}
            if self.remote_node
            else {"iallocator": self.iallocator or DEFAULT}
        )
        return {
            "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
            "instance_name": instance.name,
            "mode": "replace_new_secondary",
            "disks": _slots(view, instance),
            "early_release": self.early_release,
            **to,
        }

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return a job for each instance that leaves, or whose second copies do."""
        moves = Moving.jobs(self, view)
        return [*moves, *([self._copied(view, one)] for one in self._mirrored(view))]

    def result(self, view: View, results: Sequence[Any]) -> Leaving:
        """Return whom the jobs are for, in their order, and why the others stay."""
        told = Moving.result(self, view, results)
        copied = (one.name for one in self._mirrored(view))
        return replace(told, names=(*told.names, *copied))

    def warnings(self, view: View) -> Iterator[str]:
        """Say who stays, and which copies belong to nobody."""
        yield from Moving.warnings(self, view)
        for disk in view.config.mirrored_on(self.node(view)):
            if view.config.owner(disk) is None:
                yield (
                    f"disk {disk.label} belongs to no instance: its copy stays on node "
                    f"{self.node(view).name}"
                )

    def move(self, view: View, instance: Instance, to: Node) -> list[Opcode]:
        """Return the migration of one that runs, the failover of one that does not."""
        alive = running(view, self.node(view))
        moved = (migrate if instance.uuid in alive else failover)(instance, to)
        second = copies.secondary(view.config, instance)
        if second is None:
            return moved
        for opcode in moved:
            del opcode["target_node"]  # it goes where its second copies are
        # These are here once it has moved.
        return [*moved, self._copied(view, instance)] if self.mode == "all" else moved


def _slots(view: View, instance: Instance) -> list[int]:
    """Return the slots of mirrored disks, where an instance has others, too."""
    slots = mirrored_slots(view.config, instance)
    return slots if len(slots) < len(instance.disks) else []
