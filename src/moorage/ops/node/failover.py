# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node failover``: every instance of a node starts again on another one."""

from moorage.jobs import View
from moorage.model import Instance, Node
from moorage.model.caller import Role

from .moving import Moving, Opcode, failover


class NodeFailover(Moving, frozen=True, kw_only=True):
    """Fail over all instances of a node, running or not.

    Attributes
    ----------
    target_node
        Where all of them go; the planner chooses a node for each without it.
    ignore_consistency
        Go on though a mirror is degraded.
    """

    op_id = "OP_NODE_FAILOVER"
    role = Role.OPERATE

    target_node: str | None = None
    ignore_consistency: bool = False

    def wanted(self) -> str | None:
        """Return the name of the node that was named."""
        return self.target_node

    def leaving(self, view: View) -> list[Instance]:
        """Return everybody."""
        return view.config.instances_on(self.node(view))

    def move(self, _view: View, instance: Instance, to: Node) -> list[Opcode]:
        """Return the failover of one."""
        more = {"ignore_consistency": True} if self.ignore_consistency else {}
        return [one | more for one in failover(instance, to)]
