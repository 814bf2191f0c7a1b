# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node failover``: every instance of a node starts again on another one."""

from moorage.jobs import View

from .moving import Moving, Opcode, check_mobile, failover
from .residents import running


class NodeFailover(Moving, frozen=True, kw_only=True):
    """Fail over all instances of a node, running or not."""

    op_id = "OP_NODE_FAILOVER"

    target_node: str | None = None

    def wanted(self) -> str | None:
        """Return the name of the node that was named."""
        return self.target_node

    def check(self, view: View) -> None:
        """Refuse while nobody can tell what runs, and instances that cannot move."""
        running(view, self.node(view))
        for instance in view.config.instances_on(self.node(view)):
            check_mobile(view.config, instance)
        self.targets(view, view.config.instances_on(self.node(view)))

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return a job for each instance."""
        moving = view.config.instances_on(self.node(view))
        to = self.targets(view, moving)
        return [failover(instance, to[instance.uuid]) for instance in moving]
