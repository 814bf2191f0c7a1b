# SPDX-License-Identifier: BSD-2-Clause
"""Tasks on a disk, on every node that keeps a copy of it.

A disk that the cluster mirrors is on two nodes: one where its guest runs, or where the
work is done, and a *peer*, whose copy follows. Any other disk has no peers, and each of
these is the one task of :mod:`moorage.ops.asking.node_tasks`. Nothing is asked of a
peer that somebody marked offline: the disk goes on with one copy.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.errors import WrongState
from moorage.jobs import Lock, Run, Task, View
from moorage.model import Claim, Config, Disk, Instance, Node, pair_of
from moorage.ops.asking import node_tasks
from moorage.ops.asking.disk_presets import as_used
from moorage.ops.asking.node_tasks import of_disk, on_disk
from moorage.protocol import (
    AttachDisk,
    AwaitSync,
    CloseDisk,
    DetachDisk,
    TuneDisk,
)
from moorage.protocol.disk import ALONE, EXCLUSIVE, FOUND, SEIZED, SHARED

from .disk_access import able, elsewhere, forgetting
from .units import kept_as, occupied, unit_of


def keeps(disk: Disk, node: Node) -> bool:
    """Whether a node keeps one of the two copies of a disk."""
    pair = pair_of(disk)
    return pair is not None and node.uuid in pair.nodes


def others(config: Config, disk: Disk, node: Node) -> list[Node]:
    """Return the nodes that keep a disk besides `node`, offline ones too."""
    pair = pair_of(disk)
    kept = pair.nodes if pair else ()
    return [config.node(uuid) for uuid in kept if uuid != node.uuid]


def peers(config: Config, disk: Disk, node: Node) -> list[Node]:
    """Return the nodes that keep a disk besides `node` and are not marked offline."""
    return [one for one in others(config, disk, node) if not one.offline]


def hold(config: Config, disks: Iterable[Disk]) -> Iterator[Lock]:
    """Share the nodes that keep copies of disks."""
    for disk in disks:
        pair = pair_of(disk)
        for uuid in pair.nodes if pair else ():
            yield Lock("node", config.node(uuid).uuid, shared=True)


def secondary(config: Config, instance: Instance) -> Node | None:
    """Return the node that keeps the other copies of an instance's mirrored disks."""
    home = config.home(instance)
    for disk in config.disks_of(instance):
        for node in others(config, disk, home):
            return node
    return None


def lonely(config: Config, disk: Disk, node: Node) -> bool:
    """Whether the other copy of a disk is on a node that is marked offline."""
    return any(one.offline for one in others(config, disk, node))


def check_alone(config: Config, disk: Disk, node: Node) -> None:
    """Raise `WrongState` if a node would open an old copy, with no other in sight.

    Where the other node is to be had, DRBD waits for it, and fetches what is missing.
    """
    if disk.behind == node.uuid and lonely(config, disk, node):
        names = ", ".join(one.name for one in others(config, disk, node))
        raise WrongState(
            f"the copy of disk {disk.label} on node {node.name} missed what node "
            f"{names} wrote without it, and {names} is marked offline",
            hint=f"gnt-node modify -O no {names}, once it is back; to go on with what "
            "there is: gnt-instance startup --force",
            disk=disk.uuid,
            node=node.name,
        )


def room(config: Config, disks: Iterable[Disk], template: str, node: Node) -> Claim:
    """Claim the room of copies of disks on a node, kept as disks of a template."""
    made = (
        (kept_as(template, unit_of(config, one)), occupied(template, one.size))
        for one in disks
    )
    return Claim(node=node.uuid, rooms=tuple(made))


def create(config: Config, disk: Disk, node: Node) -> list[Run]:
    """Make the volumes; undone by removing them. What is adopted is there.

    A provider may want to be told that it is.
    """
    if disk.was_there and not able(disk).provider:
        return []
    nodes = (*peers(config, disk, node), node)
    return [node_tasks.create(config, disk, one) for one in nodes]


def second(config: Config, disk: Disk, node: Node) -> Run:
    """Make a second copy of a disk; undone by removing it.

    Where the first one was adopted, this one was not there: the job made it.
    """
    return node_tasks.create(config, replace(disk, adopted=False), node)


def attach(
    config: Config,
    disk: Disk,
    node: Node,
    *,
    held: bool = False,
    alone: bool = False,
) -> list[Run]:
    """Attach, and open on `node` for it alone; undone by detaching.

    Parameters
    ----------
    held
        See :func:`moorage.ops.asking.node_tasks.attach`.
    alone
        Whether it is to be used although a peer cannot follow.

    Raises
    ------
    WrongState
        If this is an old copy, nobody insists, and the other one is out of sight.
    """
    opened = EXCLUSIVE
    if not (alone or held):
        check_alone(config, disk, node)
    if alone:
        opened = SEIZED if disk.behind == node.uuid else ALONE
    after = peers(config, disk, node)
    return [
        *(follow(config, disk, one, held=held, tolerant=alone) for one in after),
        node_tasks.attach(config, disk, node, opened, held=held),
    ]


def adopt(config: Config, disk: Disk, node: Node) -> Iterator[Run]:
    """Hold a disk on its nodes that a guest there has in use, started by others.

    A mirrored one must be set up as it is on record: nothing of it is changed.
    """
    for peer in peers(config, disk, node):
        yield node_tasks.attach(config, disk, peer, FOUND, held=True)
    opened = FOUND if keeps(disk, node) else EXCLUSIVE
    yield node_tasks.attach(config, disk, node, opened, held=True)


def follow(
    config: Config,
    disk: Disk,
    peer: Node,
    *,
    held: bool = False,
    tolerant: bool = False,
) -> Run:
    """Attach on a peer, which then follows what is written elsewhere."""
    verbs = AttachDisk, None if held else DetachDisk
    return on_disk(config, disk, peer, "attach the copy of", *verbs, tolerant=tolerant)


def detach(
    config: Config,
    disk: Disk,
    node: Node,
    *,
    tolerant: bool = False,
    held: bool = True,
) -> list[Run]:
    """Detach; undone by attaching (:func:`moorage.ops.asking.node_tasks.detach`)."""
    tasks = [node_tasks.detach(config, disk, node, tolerant=tolerant, held=held)]
    for peer in peers(config, disk, node):
        task = node_tasks.detach(config, disk, peer, tolerant=tolerant, held=held)
        again = AttachDisk(**of_disk(config, disk)) if task.undo else None
        tasks.append(replace(task, undo=again))
    return tasks


def let_go(config: Config, disk: Disk, node: Node) -> Iterator[Run]:
    """Detach what nobody needs any more: there is no way back."""
    for one in (node, *peers(config, disk, node)):
        yield node_tasks.let_go(config, disk, one)


def destroy(
    view: View, disk: Disk, node: Node, *, tolerant: bool = False
) -> Iterator[Task]:
    """Destroy the volumes of a disk that a node may have to find first; forget it."""
    config, sought, hint = view.config, elsewhere(disk, node), forgetting(disk)
    for one in (*peers(config, disk, node), node):
        yield node_tasks.remove(
            config, disk, one, sought=sought, tolerant=tolerant, hint=hint
        )
    yield view.record(f"forget disk {disk.label}", drop=(disk,))


def left_behind(config: Config, disk: Disk) -> Iterator[str]:
    """Say which copies stay when a disk is removed, for their nodes are off."""
    pair = pair_of(disk)
    for uuid in pair.nodes if pair else ():
        node = config.node(uuid)
        if node.offline:
            yield (
                f"node {node.name} is marked offline: its copy of disk {disk.label} "
                "stays there"
            )


def wait(
    config: Config, disk: Disk, node: Node, *, firm: bool = False
) -> Iterator[Run]:
    """Wait until both copies of a mirrored disk are the same.

    That they do not become so is a warning, or, where it is `firm`, a failure.
    """
    if keeps(disk, node) and peers(config, disk, node):
        yield Run(
            what=f"wait until both copies of disk {disk.label} are the same",
            node=node.uuid,
            do=AwaitSync(**of_disk(config, disk)),
            tolerant=not firm,
        )


def hold_used(config: Config, templates: Iterable[str]) -> Iterator[Lock]:
    """Hold the disks of some templates that are in use: :func:`retuned` tells of them.

    A node refuses what is earlier than the last that it heard of a disk: told while
    another job has it, that job would fail.
    """
    told = {*templates}
    for disk in config.all(Disk):
        owner = config.owner(disk)
        if disk.dev_type in told and owner and owner.disks_active:
            yield Lock("disk", disk.uuid)


def retuned(before: Config, after: Config, disks: Iterable[Disk]) -> Iterator[Run]:
    """Tell the nodes that use disks of live parameters that became others.

    One that is not told takes them with the next start of its guest.

    Parameters
    ----------
    disks
        As they are after the change.
    """
    for disk in disks:
        owner = after.owner(disk)
        if owner is None or not owner.disks_active:
            continue
        live = FACTS[disk.dev_type].live
        old = as_used(before, before.disk(disk.uuid)).params
        new = as_used(after, disk).params
        if all(old.get(name) == new.get(name) for name in live):
            continue
        pair = pair_of(disk)
        for node in map(after.node, pair.nodes if pair else (owner.primary_node,)):
            if not node.offline:
                yield on_disk(after, disk, node, "tune", TuneDisk, tolerant=True)


def take_over(config: Config, disk: Disk, node: Node, *, seized: bool) -> Iterator[Run]:
    """Attach where a guest starts; if `seized`, a copy that may lack writes, too."""
    for peer in peers(config, disk, node):
        yield follow(config, disk, peer, tolerant=True)
    opened = SEIZED if seized and keeps(disk, node) else ALONE
    yield node_tasks.attach(config, disk, node, opened)


def arrive(config: Config, disk: Disk, node: Node) -> Run:
    """Let a node open a disk beside the one that a guest is about to leave.

    A peer holds its copy already: taken back, it follows again.
    """
    task = node_tasks.attach(config, disk, node, SHARED)
    if not keeps(disk, node):
        return task
    return replace(task, undo=CloseDisk(**of_disk(config, disk)))


def leave(config: Config, disk: Disk, node: Node) -> Iterator[Run]:
    """Let a node let go of a disk whose guest has left; a peer follows instead."""
    if keeps(disk, node):
        yield follow(config, disk, node, held=True, tolerant=True)
    else:
        yield node_tasks.detach(config, disk, node, tolerant=True)


def close(config: Config, disk: Disk, node: Node) -> Run:
    """Stop writing on a node, whatever it did before."""
    return on_disk(config, disk, node, "close", CloseDisk, tolerant=True)
