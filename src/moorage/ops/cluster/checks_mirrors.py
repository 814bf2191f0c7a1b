# SPDX-License-Identifier: BSD-2-Clause
"""Verify that the copies of mirrored disks are the same, and one of them writes."""

from collections.abc import Iterator, Mapping

from moorage.jobs import Question
from moorage.model import Config, Disk, MirrorState, Node, Pair, pair_of
from moorage.ops.volumes import pairs

from .observation import Finding, Seen

Sides = Mapping[str, MirrorState]
"""What each node that answered says of one disk, by its uuid."""


def ask(config: Config) -> Iterator[Question]:
    """Ask every node for its mirrored devices, where there are mirrored disks."""
    for node in config.hosts() if config.holdings else ():
        yield pairs.mirrors_on(node.uuid)


def mirrors(seen: Seen) -> Iterator[Finding]:
    """Find copies that are behind, that are not connected, and second writers."""
    told = _told(seen)
    for disk in seen.config.named(Disk):
        pair, owner = pair_of(disk), seen.config.owner(disk)
        if pair is None:
            continue
        sides = {
            uuid: told[uuid][pair.minor(uuid)]
            for uuid in pair.nodes
            if pair.minor(uuid) in told.get(uuid, {})
        }
        yield from _writers(seen, disk, sides)
        if owner and owner.disks_active:
            yield from _degraded(seen, disk, pair, sides, told)


def strangers(seen: Seen) -> Iterator[Finding]:
    """Find devices of mirrored disks that are no disk's."""
    for uuid, devices in _told(seen).items():
        node = seen.config.node(uuid)
        for minor in devices:
            if (uuid, minor) not in seen.config.mirrors:
                yield Finding(
                    f"node {node.name}",
                    f"it has a mirrored device {minor}, which is no disk's",
                    f"if nobody uses it: drbdsetup down resource{minor}, on "
                    f"{node.name}",
                )


def _told(seen: Seen) -> dict[str, dict[int, MirrorState]]:
    found = {}
    for node in seen.config.named(Node):
        told = seen.view.told(pairs.mirrors_on(node.uuid))
        if told is not None:
            found[node.uuid] = {one.minor: one for one in told}
    return found


def _writers(seen: Seen, disk: Disk, sides: Sides) -> Iterator[Finding]:
    writing = [uuid for uuid, one in sides.items() if one.role == "Primary"]
    if len(writing) > 1:
        names = " and ".join(seen.config.node(uuid).name for uuid in writing)
        yield Finding(
            f"disk {disk.label}",
            f"nodes {names} both may write to it",
            "if no job works on it: gnt-instance migrate --cleanup "
            f"{_owner(seen, disk)}",
        )


def _degraded(
    seen: Seen,
    disk: Disk,
    pair: Pair,
    sides: Sides,
    told: Mapping[str, Mapping[int, MirrorState]],
) -> Iterator[Finding]:
    for uuid in pair.nodes:
        node, side = seen.config.node(uuid), sides.get(uuid)
        if node.offline or uuid not in told:
            continue
        if side is None:
            yield Finding(
                f"disk {disk.label}",
                f"its copy on node {node.name} is not set up: it follows nobody",
                f"gnt-instance activate-disks {_owner(seen, disk)}",
            )
        elif not side.in_sync:
            yield Finding(
                f"disk {disk.label}",
                f"its copies are not the same: node {node.name} says "
                f"{pairs.told(side)}",
                f"gnt-instance activate-disks {_owner(seen, disk)} connects them; "
                f"gnt-instance replace-disks -a {_owner(seen, disk)} makes a bad one "
                "anew",
                warning=side.copying,
            )
            return


def _owner(seen: Seen, disk: Disk) -> str:
    owner = seen.config.owner(disk)
    return owner.name if owner else "INSTANCE"
