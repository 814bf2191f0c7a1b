# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node migrate``: every running instance of a node moves, without stopping."""

from moorage.errors import WrongState
from moorage.jobs import View
from moorage.model import Instance

from .moving import Moving, Opcode, check_mobile, migrate
from .residents import running


class NodeMigrate(Moving, frozen=True, kw_only=True):
    """Migrate the instances that run on a node; those that do not run stay."""

    op_id = "OP_NODE_MIGRATE"

    target_node: str | None = None

    def wanted(self) -> str | None:
        """Return the name of the node that was named."""
        return self.target_node

    def check(self, view: View) -> None:
        """Refuse a node that is off, and instances that cannot move."""
        node = self.node(view)
        if node.offline:
            raise WrongState(
                f"node {node.name} is marked offline: nothing runs there to migrate",
                hint=f"gnt-node failover -n NODE {node.name}",
            )
        for instance in self._running(view):
            check_mobile(view.config, instance)
        self.targets(view, self._running(view))

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return a job for each instance."""
        moving = self._running(view)
        to = self.targets(view, moving)
        return [migrate(instance, to[instance.uuid]) for instance in moving]

    def _running(self, view: View) -> list[Instance]:
        node = self.node(view)
        alive = running(view, node)
        return [one for one in view.config.instances_on(node) if one.uuid in alive]
