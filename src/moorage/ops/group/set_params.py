# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group modify``: how a group takes instances, and its nodes' parameters."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import field

from moorage.errors import BadInput
from moorage.jobs import Lock, Operation, Task, View, commit
from moorage.model import Change, NodeGroup, successor
from moorage.ops.ndparams import checked

from .add import check_policy


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with changes; ``default`` and null take one away."""
    kept = {**old, **new}
    return {k: v for k, v in kept.items() if v not in (None, "default")}


class GroupSetParams(Operation, frozen=True, kw_only=True):
    """Change a node group."""

    op_id = "OP_GROUP_SET_PARAMS"

    group_name: str
    alloc_policy: str | None = None
    ndparams: dict[str, Any] = field(default_factory=dict)

    def changes(self, group: NodeGroup) -> dict[str, Any]:
        """Return the fields that change."""
        found: dict[str, Any] = {}
        if self.alloc_policy is not None:
            found["alloc_policy"] = check_policy(self.alloc_policy)
        if self.ndparams:
            found["ndparams"] = merged(group.ndparams, checked(self.ndparams))
        if not found:
            raise BadInput(
                "nothing to change was named",
                hint=f"gnt-group modify --alloc-policy=preferred {group.name}",
            )
        return found

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the group."""
        yield Lock("group", view.config.group(self.group_name).uuid)

    def check(self, view: View) -> None:
        """Refuse values that a group cannot have."""
        self.changes(view.config.group(self.group_name))

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the change."""
        group = view.config.group(self.group_name)
        change = Change((successor(group, view.now, **self.changes(group)),))
        what = f"change node group {group.name}"
        yield commit(what, change, view.config.before(change))

    def result(self, view: View, results: Sequence[Any]) -> list[list[Any]]:
        """Return what changed, and to what."""
        del results
        group = view.config.group(self.group_name)
        return [[name, value] for name, value in self.changes(group).items()]
