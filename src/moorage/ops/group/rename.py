# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group rename``: another name for the same group."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.jobs import Lock, Task, View
from moorage.model import NodeGroup
from moorage.ops.new_names import check_new_name

from .base import OnGroup


class GroupRename(OnGroup, frozen=True, kw_only=True):
    """Give a node group another name.

    Attributes
    ----------
    new_name
        One that no other node group has.
    """

    op_id = "OP_GROUP_RENAME"

    new_name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the group and the new name."""
        yield from OnGroup.locks(self, view)
        yield Lock("group", self.new_name)

    def check(self, view: View) -> None:
        """Refuse a name that is taken."""
        check_new_name(view.config, NodeGroup, self.new_name)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the name."""
        group = self.group(view)
        what = f"rename node group {group.name} to {self.new_name}"
        yield view.change(what, group, name=self.new_name)

    def result(self, _view: View, _results: Sequence[Any]) -> str:
        """Return the new name, as Ganeti does."""
        return self.new_name
