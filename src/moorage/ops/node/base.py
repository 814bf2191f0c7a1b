# SPDX-License-Identifier: BSD-2-Clause
"""What operations on one node have in common."""

from moorage.jobs import Operation, View
from moorage.model import Node


class OnNode(Operation, frozen=True, kw_only=True):
    """An operation on one node.

    Attributes
    ----------
    node_name
        Name or uuid of the node.
    """

    node_name: str

    def node(self, view: View) -> Node:
        """Return the node."""
        return view.config.node(self.node_name)
