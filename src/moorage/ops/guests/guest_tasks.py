# SPDX-License-Identifier: BSD-2-Clause
"""Tasks on guests: start, stop, and disks in and out while they run."""

from moorage.jobs import Run
from moorage.model import Config, Disk, Instance, Node
from moorage.ops.asking.node_tasks import of_guest, of_whole
from moorage.protocol import PlugDisk, StartGuest, StopGuest, UnplugDisk


def start(
    config: Config,
    instance: Instance,
    disks: list[Disk],
    node: Node,
    *,
    paused: bool = False,
) -> Run:
    """Start a guest, to stand still at once if `paused`; undone by pulling its plug."""
    return Run(
        what=f"start {instance.name} on {node.name}",
        node=node.uuid,
        do=StartGuest(
            **of_whole(config, instance, node), disks=tuple(disks), paused=paused
        ),
        undo=StopGuest(**of_guest(instance), disks=tuple(disks)),
    )


def stop(
    config: Config,
    instance: Instance,
    disks: list[Disk],
    node: Node,
    patience: float,
    *,
    final: bool = False,
) -> Run:
    """Power a guest down within `patience` seconds; undone by starting it.

    If it is `final`, there is no way back once it is down.
    """
    return Run(
        what=f"stop {instance.name} on {node.name}",
        node=node.uuid,
        do=StopGuest(**of_guest(instance), disks=tuple(disks), timeout=patience),
        undo=StartGuest(**of_whole(config, instance, node), disks=tuple(disks)),
        final=final,
    )


def plug(instance: Instance, disk: Disk, node: Node, slot: int) -> Run:
    """Hot-plug a disk; undone by unplugging."""
    return Run(
        what=f"plug disk {disk.label} into {instance.name} on {node.name}",
        node=node.uuid,
        do=PlugDisk(**of_guest(instance), disk=disk, slot=slot),
        undo=UnplugDisk(**of_guest(instance), disk=disk, slot=slot),
    )


def unplug(instance: Instance, disk: Disk, node: Node, slot: int) -> Run:
    """Hot-unplug a disk; undone by plugging."""
    return Run(
        what=f"unplug disk {disk.label} from {instance.name} on {node.name}",
        node=node.uuid,
        do=UnplugDisk(**of_guest(instance), disk=disk, slot=slot),
        undo=PlugDisk(**of_guest(instance), disk=disk, slot=slot, back=True),
    )
