# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node migrate``: every running instance of a node moves, without stopping."""

from moorage.errors import WrongState
from moorage.jobs import View
from moorage.model import Instance, Node
from moorage.model.caller import Role
from moorage.model.kinds import MigrationMode

from .moving import Moving, Opcode, migrate
from .residents import running


class NodeMigrate(Moving, frozen=True, kw_only=True):
    """Migrate the instances that run on a node; those that do not run stay.

    Attributes
    ----------
    target_node
        Where all of them go; the planner chooses a node for each without it.
    mode
        ``live``, or ``non-live`` to pause the guests while they move.
    ignore_ipolicy
        Whether the policy of the node group does not count.
    """

    op_id = "OP_NODE_MIGRATE"
    role = Role.OPERATE

    target_node: str | None = None
    mode: MigrationMode | None = None
    ignore_ipolicy: bool = False

    def wanted(self) -> str | None:
        """Return the name of the node that was named."""
        return self.target_node

    def check(self, view: View) -> None:
        """Refuse a node that is off."""
        node = self.node(view)
        if node.offline:
            raise WrongState(
                f"node {node.name} is marked offline: nothing runs there to migrate",
                hint=f"gnt-node failover {node.name}",
            )
        Moving.check(self, view)

    def leaving(self, view: View) -> list[Instance]:
        """Return who runs there."""
        node = self.node(view)
        alive = running(view, node)
        return [one for one in view.config.instances_on(node) if one.uuid in alive]

    def move(self, _view: View, instance: Instance, to: Node) -> list[Opcode]:
        """Return the migration of one."""
        more: Opcode = {"mode": self.mode} if self.mode else {}
        more |= {"ignore_ipolicy": True} if self.ignore_ipolicy else {}
        return [one | more for one in migrate(instance, to)]
