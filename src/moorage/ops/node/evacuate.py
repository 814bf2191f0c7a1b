# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node evacuate``: a node is emptied, whatever it takes."""

from moorage.errors import BadInput
from moorage.jobs import View
from moorage.model import Instance, Node

from .moving import Moving, Opcode, failover, migrate
from .residents import running

MODES = ("all", "primary-only", "secondary-only")


class NodeEvacuate(Moving, frozen=True, kw_only=True):
    """Move all instances away: those that run migrate, the others fail over.

    Attributes
    ----------
    remote_node
        Where they go; Ganeti's name for it.
    mode
        ``primary-only`` for instances that belong to the node, ``secondary-only`` for
        second copies of disks, ``all`` for both.
    """

    op_id = "OP_NODE_EVACUATE"

    remote_node: str | None = None
    mode: str = MODES[0]

    def wanted(self) -> str | None:
        """Return the name of the node that was named."""
        return self.remote_node

    def check(self, view: View) -> None:
        """Refuse a mode that there is not."""
        if self.mode not in MODES:
            known = ", ".join(MODES)
            raise BadInput(f"'{self.mode}' is not an evacuation mode: there is {known}")
        Moving.check(self, view)

    def leaving(self, view: View) -> list[Instance]:
        """Return everybody, but where only second copies are meant: there are none."""
        if self.mode == "secondary-only":
            return []
        return view.config.instances_on(self.node(view))

    def move(self, view: View, instance: Instance, to: Node) -> list[Opcode]:
        """Return the migration of one that runs, the failover of one that does not."""
        alive = running(view, self.node(view))
        return (migrate if instance.uuid in alive else failover)(instance, to)
