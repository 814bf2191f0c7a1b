# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group assign-nodes``: nodes change the group that they belong to.

A group is a promise: its nodes see the same storage. So a node does not take disks with
it that other nodes of its old group reach: their mobility would silently change. Ganeti
warns and goes on; here the node is emptied of such instances first.
"""

from collections.abc import Iterator

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Task, View
from moorage.model import Change, Config, Disk, Node, apply, successor
from moorage.ops.guests import cabling
from moorage.ops.volumes import copies, pools
from moorage.ops.volumes.disk_access import able
from moorage.storage import Reach

from .base import OnGroup


def check_leaves_nothing(config: Config, node: Node) -> None:
    """Raise `WrongState` while an instance on the node has disks that others reach."""
    for instance in config.instances_on(node):
        disks = config.disks_of(instance)
        shared = [disk for disk in disks if able(disk).reach is not Reach.NODE]
        if shared:
            group = config.group(node.group)
            raise WrongState(
                f"instance {instance.name} on node {node.name} has disk "
                f"{shared[0].label}, which is reached from node group {group.name}",
                hint=f"gnt-node evacuate {node.name}",
                node=node.name,
                instance=instance.name,
            )


def taken_along(config: Config, nodes: list[Node]) -> list[Disk]:
    """Return the disks that change their group with the nodes.

    Those are the disks whose data is there, and those of instances that run there.
    """
    moving = {node.uuid for node in nodes}
    found = {d.uuid: d for d in config.all(Disk) if moving.intersection(d.nodes)}
    for node in nodes:
        for instance in config.instances_on(node):
            found |= {disk.uuid: disk for disk in config.disks_of(instance)}
    return list(found.values())


class GroupAssignNodes(OnGroup, frozen=True, kw_only=True):
    """Put nodes into a group.

    Attributes
    ----------
    nodes
        Names or uuids.
    force
        Move them although instances have disks that the old group reaches; not where
        a disk's storage pool is not connected.
    """

    op_id = "OP_GROUP_ASSIGN_NODES"

    nodes: tuple[str, ...]
    force: bool = False

    def moving(self, config: Config) -> list[Node]:
        """Return the nodes that are not in the group yet."""
        group = config.group(self.group_name)
        named = {node.uuid: node for node in map(config.node, self.nodes)}
        return [node for node in named.values() if node.group != group.uuid]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the groups and the nodes, with what would move along."""
        config, nodes = view.config, self.moving(view.config)
        yield from OnGroup.locks(self, view)
        for node in nodes:
            yield Lock("group", node.group)
            yield Lock("node", node.uuid)
        for disk in taken_along(config, nodes):
            yield Lock("disk", disk.uuid)
            yield from pools.hold([disk.pool])

    def check(self, view: View) -> None:
        """Refuse to tear disks out of their group."""
        if not self.nodes:
            raise BadInput(
                "no node was named",
                hint=f"gnt-group assign-nodes {self.group_name} NODE",
            )
        for node in self.moving(view.config):
            if not self.force:
                check_leaves_nothing(view.config, node)
        group = self.group(view)
        for node in self.moving(view.config):
            for instance in view.config.instances_on(node):
                cabling.check_connected(view.config, group, instance.nics)
        for disk in taken_along(view.config, self.moving(view.config)):
            pools.check_used_in(view.config, disk, group)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the group in the nodes, and in the disks that they hold.

        Its presets hold for disks in use from then on.
        """
        config, group = view.config, self.group(view)
        nodes = self.moving(config)
        if not nodes:
            return
        objects: list[Node | Disk] = [*nodes, *taken_along(config, nodes)]
        moved = [successor(one, view.now, group=group.uuid) for one in objects]
        names = ", ".join(node.name for node in nodes)
        yield view.record(f"put {names} into node group {group.name}", *moved)
        after = apply(config, Change(tuple(moved)))
        disks = (one for one in moved if isinstance(one, Disk))
        yield from copies.retuned(config, after, disks)
