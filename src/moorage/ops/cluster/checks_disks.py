# SPDX-License-Identifier: BSD-2-Clause
"""Verify that every disk is attached where its record says, and nowhere else."""

from collections.abc import Iterator

from moorage.model import Disk, Held, Node
from moorage.ops.volumes import copies
from moorage.storage.ownership import ways_out

from .observation import Finding, Seen


def quarantined(seen: Seen) -> Iterator[Finding]:
    """Find disks that could not be proven safe."""
    for disk in seen.config.named(Disk):
        if disk.quarantine:
            yield Finding(
                f"disk {disk.label}",
                f"it is quarantined: {disk.quarantine}",
                ways_out(disk)
                if disk.unproven
                else f"gnt-disk info {disk.uuid}; when it is sound: "
                f"gnt-disk modify --lift-quarantine {disk.uuid}",
            )


def leftovers(seen: Seen) -> Iterator[Finding]:
    """Find attachments on nodes that the configuration does not account for."""
    for node, facts in seen.nodes():
        for held in facts.held:
            yield from _held(seen, node, held)


def _held(seen: Seen, node: Node, held: Held) -> Iterator[Finding]:
    disk = seen.config.objects.get(held.disk)
    if not isinstance(disk, Disk):
        yield Finding(
            f"node {node.name}",
            f"it holds disk {held.disk}, which the configuration does not know",
            f"detach it on {node.name} by hand ({held.path or 'userspace only'})",
        )
        return
    wrong = _wrong(seen, disk, node, held)
    if wrong:
        yield Finding(
            f"disk {disk.label}",
            f"node {node.name} still holds it: {wrong}",
            f"if no job works on it: {_command(seen, disk, node)}",
        )


def _wrong(seen: Seen, disk: Disk, node: Node, held: Held) -> str:
    """Return why a node should not hold a disk; empty if it should."""
    owner = seen.config.owner(disk)
    if owner is None:
        return "it is attached to no instance"
    home = seen.config.home(owner)
    if home.uuid != node.uuid and not copies.keeps(disk, node):
        return f"its instance {owner.name} is on node {home.name}"
    if held.epoch != disk.epoch:
        return f"by epoch {held.epoch}, and it is in epoch {disk.epoch}"
    if not owner.disks_active and owner.uuid not in seen.running:
        return f"the disks of its instance {owner.name} are not active"
    return ""


def _command(seen: Seen, disk: Disk, node: Node) -> str:
    """Return a command that ends it, in the state that the owner is in."""
    owner = seen.config.owner(disk)
    if owner is None:
        return f"gnt-disk detach {disk.uuid}"
    if owner.primary_node != node.uuid:
        return f"gnt-instance migrate --cleanup {owner.name}"
    if owner.disks_active or owner.uuid in seen.running:
        return f"gnt-instance activate-disks {owner.name}"
    return f"gnt-instance deactivate-disks {owner.name}"


def missing(seen: Seen) -> Iterator[Finding]:
    """Find disks in use that their node does not hold."""
    held = {
        node: {one.disk for one in facts.held} for node, facts in seen.facts.items()
    }
    for disk in seen.config.named(Disk):
        owner = seen.config.owner(disk)
        if owner is None or not owner.disks_active:
            continue
        if disk.uuid not in held.get(owner.primary_node, {disk.uuid}):
            home = seen.config.home(owner)
            yield Finding(
                f"disk {disk.label}",
                f"the disks of instance {owner.name} are active, and node {home.name} "
                "does not hold this one",
                f"gnt-instance activate-disks {owner.name}",
                warning=True,
            )
