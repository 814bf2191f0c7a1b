# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node failover``: every instance of a node starts again on another one."""

from moorage.jobs import View
from moorage.model import Node

from .moving import Moving, Opcode, check_mobile, failover, target
from .residents import running


class NodeFailover(Moving, frozen=True, kw_only=True):
    """Fail over all instances of a node, running or not."""

    op_id = "OP_NODE_FAILOVER"

    target_node: str | None = None

    def check(self, view: View) -> None:
        """Refuse while nobody can tell what runs, and instances that cannot move."""
        self._target(view)
        running(view, self.node(view))
        for instance in view.config.instances_on(self.node(view)):
            check_mobile(view.config, instance)

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return a job for each instance."""
        to = self._target(view)
        moving = view.config.instances_on(self.node(view))
        return [failover(instance, to) for instance in moving]

    def _target(self, view: View) -> Node:
        node = self.node(view)
        return target(view.config, node, self.target_node, self.iallocator)
