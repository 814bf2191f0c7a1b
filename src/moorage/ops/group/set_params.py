# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group modify``: how a group takes instances, and its nodes' parameters."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import field

from moorage.errors import BadInput
from moorage.jobs import Lock, Task, View
from moorage.jobs.results import Changed
from moorage.model import Change, Config, Disk, NodeGroup, apply, ipolicy, successor
from moorage.model.kinds import AllocPolicy
from moorage.ops.merging import merged, with_diskparams
from moorage.ops.ndparams import checked
from moorage.ops.planning import policy
from moorage.ops.volumes import copies

from .base import OnGroup


class GroupSetParams(OnGroup, frozen=True, kw_only=True):
    """Change a node group.

    Attributes
    ----------
    alloc_policy
        ``preferred``, ``last_resort`` or ``unallocable``: whether new instances go
        there.
    ndparams
        Node parameters of nodes that have none of their own; the value ``default``
        drops one.
    ipolicy
        Parts of its own instance policy; the value ``default`` lets the cluster's hold.
    diskparams
        Parameters of disks to come, by template; the value ``default`` drops one.
    """

    op_id = "OP_GROUP_SET_PARAMS"

    alloc_policy: AllocPolicy | None = None
    ndparams: dict[str, Any] = field(default_factory=dict)
    ipolicy: dict[str, Any] = field(default_factory=dict)
    diskparams: dict[str, dict[str, Any]] = field(default_factory=dict)

    def changes(self, config: Config, group: NodeGroup) -> dict[str, Any]:
        """Return the fields that change."""
        found: dict[str, Any] = {}
        if self.alloc_policy is not None:
            found["alloc_policy"] = self.alloc_policy
        if self.ndparams:
            found["ndparams"] = merged(group.ndparams, checked(self.ndparams))
        if self.ipolicy:
            below = ipolicy.cluster_policy(config.cluster)
            own = ipolicy.changed(group.ipolicy, self.ipolicy, below, of_group=True)
            found["ipolicy"] = own
        if self.diskparams:
            found["diskparams"] = with_diskparams(group.diskparams, self.diskparams)
        if not found:
            raise BadInput(
                "nothing to change was named",
                hint=f"gnt-group modify --alloc-policy=preferred {group.name}",
            )
        return found

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the group, and disks in use that its presets hold for."""
        yield from super().locks(view)
        yield from copies.hold_used(view.config, self.diskparams)

    def check(self, view: View) -> None:
        """Refuse values that a group cannot have."""
        self.changes(view.config, self.group(view))

    def warnings(self, view: View) -> Iterator[str]:
        """Name the instances that do not fit into the new policy."""
        cluster, group = view.config.cluster, self.group(view)
        if self.ipolicy:
            new = successor(group, view.now, **self.changes(view.config, group))
            before = ipolicy.group_policy(cluster, group)
            after = ipolicy.group_policy(cluster, new)
            yield from policy.warnings(view.config, group, before, after)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the change."""
        group = self.group(view)
        changes = self.changes(view.config, group)
        yield view.change(f"change node group {group.name}", group, **changes)
        if "diskparams" in changes:
            new = successor(group, view.now, **changes)
            after = apply(view.config, Change((new,)))
            yield from copies.retuned(view.config, after, after.all(Disk))

    def result(self, view: View, _results: Sequence[Any]) -> list[Changed]:
        """Return what changed, and to what."""
        group = self.group(view)
        changes = self.changes(view.config, group)
        return list(changes.items())
