# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group remove``: the end of an empty group."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Task, View
from moorage.model import Config, NodeGroup, StoragePool

from .base import OnGroup


def check_empty(config: Config, group: NodeGroup) -> None:
    """Raise `WrongState` while anything belongs to the group."""
    nodes = ", ".join(node.name for node in config.nodes_in(group))
    if nodes:
        raise WrongState(
            f"node group {group.name} still has the nodes {nodes}",
            hint=f"gnt-group assign-nodes OTHER_GROUP {nodes.replace(',', '')}",
        )
    if config.count(NodeGroup) == 1:
        raise WrongState(
            f"{group.name} is the last node group of the cluster",
            hint=f"gnt-group rename {group.name} NEW_NAME",
        )
    for pool in config.named(StoragePool):
        if group.uuid in pool.groups:
            raise WrongState(
                f"storage pool {pool.name} is connected to node group {group.name}",
                hint=f"gnt-storage pool disconnect {pool.name} {group.name}",
            )
    disks = [disk for disk in config.detached() if disk.group == group.uuid]
    if disks:
        raise WrongState(
            f"{len(disks)} detached disks were last used in node group {group.name}, "
            f"the first is {disks[0].label}: nobody would know where to find them",
            hint=f'gnt-disk list \'group == "{group.name}" and status == "detached"\'',
        )


class GroupRemove(OnGroup, frozen=True, kw_only=True):
    """Remove a node group that nothing belongs to."""

    op_id = "OP_GROUP_REMOVE"

    def check(self, view: View) -> None:
        """Refuse while it is in use."""
        check_empty(view.config, self.group(view))

    def tasks(self, view: View) -> Iterator[Task]:
        """Forget it."""
        group = self.group(view)
        yield view.record(f"forget node group {group.name}", drop=(group,))
