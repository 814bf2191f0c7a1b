# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group add``: a group without nodes."""

from collections.abc import Iterator
from typing import Any

from msgspec import field

from moorage.jobs import Lock, Operation, Task, View
from moorage.model import NodeGroup, ipolicy
from moorage.model.kinds import AllocPolicy
from moorage.ops.merging import with_diskparams
from moorage.ops.ndparams import checked
from moorage.ops.new_names import check_new_name


class GroupAdd(Operation, frozen=True, kw_only=True):
    """Make a node group.

    Attributes
    ----------
    group_name
        One that no other node group has.
    alloc_policy
        ``preferred``, ``last_resort`` or ``unallocable``: whether new instances go
        there.
    ndparams
        Node parameters of nodes that have none of their own.
    ipolicy
        Parts of an instance policy of its own; the cluster's hold where it has none.
    diskparams
        Parameters of disks to come, by template.
    """

    op_id = "OP_GROUP_ADD"

    group_name: str
    alloc_policy: AllocPolicy = "preferred"
    ndparams: dict[str, Any] = field(default_factory=dict)
    ipolicy: dict[str, Any] = field(default_factory=dict)
    diskparams: dict[str, dict[str, Any]] = field(default_factory=dict)

    def locks(self, _view: View) -> Iterator[Lock]:
        """Hold the name."""
        yield Lock("group", self.group_name)

    def check(self, view: View) -> None:
        """Refuse a name that is taken."""
        check_new_name(view.config, NodeGroup, self.group_name)
        checked(self.ndparams)
        with_diskparams({}, self.diskparams)
        self._policy(view)

    def _policy(self, view: View) -> dict[str, Any]:
        below = ipolicy.cluster_policy(view.config.cluster)
        return ipolicy.changed({}, self.ipolicy, below, of_group=True)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        group = NodeGroup(
            uuid=view.fresh(),
            name=self.group_name,
            alloc_policy=self.alloc_policy,
            ndparams=checked(self.ndparams),
            ipolicy=self._policy(view),
            diskparams=with_diskparams({}, self.diskparams),
            ctime=view.now,
            mtime=view.now,
        )
        yield view.record(f"record node group {group.name}", group)
