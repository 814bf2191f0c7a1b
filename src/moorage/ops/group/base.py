# SPDX-License-Identifier: BSD-2-Clause
"""What operations on a node group that is there have in common."""

from collections.abc import Iterator

from moorage.jobs import Lock, Operation, View
from moorage.model import NodeGroup


class OnGroup(Operation, frozen=True, kw_only=True):
    """An operation on one node group.

    Attributes
    ----------
    group_name
        Name or uuid of the node group.
    """

    group_name: str

    def group(self, view: View) -> NodeGroup:
        """Return the group."""
        return view.config.group(self.group_name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the group."""
        yield Lock("group", self.group(view).uuid)
