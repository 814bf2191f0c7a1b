# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node evacuate``: a node is emptied, whatever it takes."""

from moorage.errors import BadInput
from moorage.jobs import View
from moorage.model import Instance

from .moving import Moving, Opcode, check_mobile, failover, migrate
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
        """Refuse while nobody can tell what runs, and instances that cannot move."""
        if self.mode not in MODES:
            known = ", ".join(MODES)
            raise BadInput(f"'{self.mode}' is not an evacuation mode: there is {known}")
        running(view, self.node(view))
        for instance in self._moving(view):
            check_mobile(view.config, instance)
        self.targets(view, self._moving(view))

    def jobs(self, view: View) -> list[list[Opcode]]:
        """Return a job for each instance."""
        moving, alive = self._moving(view), running(view, self.node(view))
        to = self.targets(view, moving)
        return [
            migrate(one, to[one.uuid])
            if one.uuid in alive
            else failover(one, to[one.uuid])
            for one in moving
        ]

    def _moving(self, view: View) -> list[Instance]:
        # No template keeps second copies on nodes: there are no secondaries to move.
        if self.mode == "secondary-only":
            return []
        return view.config.instances_on(self.node(view))
