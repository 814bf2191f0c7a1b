# SPDX-License-Identifier: BSD-2-Clause
"""Verify that every device is the one that its disk's record means, and one disk's."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from moorage.errors import MoorageError
from moorage.jobs import Question
from moorage.model import Config, Device, Disk, Node, NodeGroup
from moorage.ops.asking.node_tasks import devices_on
from moorage.ops.volumes import identity
from moorage.ops.volumes.disk_access import online

from .observation import Finding, Seen, adopted_disks


def ask(config: Config) -> Iterator[Question]:
    """Ask the nodes of each group for the devices that were adopted for it."""
    paths = defaultdict(set)
    for disk, group in adopted_disks(config):
        paths[group.uuid].add(disk.volume)
    for uuid, wanted in paths.items():
        for node in online(config, config.group(uuid)):
            yield devices_on(node.uuid, sorted(wanted))


def devices(seen: Seen) -> Iterator[Finding]:
    """Find adopted devices that are missing, or another one, on a node of the group."""
    told = _told(seen)
    for disk, group in adopted_disks(seen.config):
        there: list[tuple[Node, Device]] = []
        for node in online(seen.config, group):
            found = told.get(node.uuid, {}).get(disk.volume)
            if found and found.kind == "block":
                there.append((node, found))
            elif found:
                yield Finding(
                    f"disk {disk.label}",
                    f"node {node.name} of group {group.name} has no block device "
                    f"{disk.volume}",
                    f"make it visible on {node.name} under this name",
                )
        yield from _wrong(disk, there)
        yield from _unequal(disk, group, there)


def _wrong(disk: Disk, there: list[tuple[Node, Device]]) -> Iterator[Finding]:
    for node, found in there:
        wrong = identity.difference(disk, found)
        if wrong:
            yield Finding(
                f"disk {disk.label}",
                f"{disk.volume} is not its device on node {node.name}: {wrong}",
                identity.remedy(disk, found),
            )


def _unequal(
    disk: Disk, group: NodeGroup, there: list[tuple[Node, Device]]
) -> Iterator[Finding]:
    """Find different devices on different nodes, where no record says which is it."""
    told: dict[str, list[str]] = defaultdict(list)
    for node, found in there:
        told[f"{found.size} MiB {found.identity}".strip()].append(node.name)
    if len(told) > 1 and disk.identity is None:
        sides = "; ".join(f"{what} on {', '.join(on)}" for what, on in told.items())
        yield Finding(
            f"disk {disk.label}",
            f"{disk.volume} is not the same device on every node of group "
            f"{group.name}: {sides}",
            identity.COMPARE,
        )


def shared(seen: Seen) -> Iterator[Finding]:
    """Find devices that are two disks: each can be written to without the other."""
    told = _told(seen)
    pairs: dict[tuple[str, str], set[str]] = {}
    for node, alike in _alike(seen, told):
        for one, other in combinations(alike, 2):
            here = told[node.uuid]
            if identity.same(here[one.volume], here[other.volume]):
                pairs.setdefault((one.uuid, other.uuid), set()).add(node.name)
    for (first, second), nodes in pairs.items():
        yield _twice(seen.config.disk(first), seen.config.disk(second), nodes)


def _alike(
    seen: Seen, told: dict[str, dict[str, Device]]
) -> Iterator[tuple[Node, list[Disk]]]:
    """Yield the disks that may be one device on a node: by number, or by identity."""
    disks = [disk for disk, _ in adopted_disks(seen.config)]
    for node in seen.config.named(Node):
        found: dict[tuple[str, str], list[Disk]] = defaultdict(list)
        for disk in disks:
            there = told.get(node.uuid, {}).get(disk.volume)
            if there and there.number:
                found["number", there.number].append(disk)
            if there and there.identity:
                found["identity", identity.whole(there.identity)].append(disk)
        for alike in found.values():
            yield node, alike


def _twice(one: Disk, other: Disk, nodes: set[str]) -> Finding:
    return Finding(
        f"disk {one.label}",
        f"it is the same device as disk {other.label} on node "
        f"{', '.join(sorted(nodes))}: {one.volume} and {other.volume}",
        f"detach one of them, then (its data stays): gnt-disk remove {other.uuid}",
    )


def sizes(seen: Seen) -> Iterator[Finding]:
    """Find attached devices that have another size than their disks' records."""
    for node, facts in seen.nodes():
        for held in facts.held:
            disk = seen.config.objects.get(held.disk)
            if (
                isinstance(disk, Disk)
                and held.size is not None
                and held.size != disk.size
                and not identity.is_adopted(disk)
            ):
                owner = seen.config.owner(disk)
                name = f" {owner.name}" if owner else ""
                yield Finding(
                    f"disk {disk.label}",
                    f"its device has {held.size} MiB on node {node.name}, and its "
                    f"record says {disk.size} MiB",
                    f"gnt-cluster repair-disk-sizes{name}",
                    warning=held.size > disk.size,
                )


def _told(seen: Seen) -> dict[str, dict[str, Device]]:
    """Return what each node that answered has at which path."""
    found = {}
    for node in seen.config.named(Node):
        try:
            found[node.uuid] = identity.devices(seen.view, node)
        except MoorageError:
            continue  # that the node is silent is a finding of its own
    return found
