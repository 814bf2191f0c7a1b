# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group rename``: another name for the same group."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.jobs import Lock, Operation, Task, View, commit
from moorage.model import Change, successor

from .add import check_new_name


class GroupRename(Operation, frozen=True, kw_only=True):
    """Give a node group another name."""

    op_id = "OP_GROUP_RENAME"

    group_name: str
    new_name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the group and the new name."""
        yield Lock("group", view.config.group(self.group_name).uuid)
        yield Lock("group", self.new_name)

    def check(self, view: View) -> None:
        """Refuse a name that is taken."""
        check_new_name(view.config, self.new_name)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the name."""
        group = view.config.group(self.group_name)
        change = Change((successor(group, view.now, name=self.new_name),))
        what = f"rename node group {group.name} to {self.new_name}"
        yield commit(what, change, view.config.before(change))

    def result(self, view: View, results: Sequence[Any]) -> str:
        """Return the new name, as Ganeti does."""
        del view, results
        return self.new_name
