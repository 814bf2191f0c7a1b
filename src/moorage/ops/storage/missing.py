# SPDX-License-Identifier: BSD-2-Clause
"""Disks without a volume, and nodes that hold a disk which should not be there."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from moorage.jobs import View
from moorage.model import Config, Disk, Held, Node, NodeFacts, Place
from moorage.ops.asking.node_tasks import facts_on
from moorage.ops.volumes import copies
from moorage.ops.volumes.directories import place_of, unit_at
from moorage.storage import Reach, template_named

from .survey import Key, Look, group_of_or_none, key_of, keys_of, kind_of, seen


@dataclass(frozen=True, slots=True)
class Missing:
    """A disk whose volume nobody sees who should.

    Attributes
    ----------
    nodes
        Those that looked.
    """

    disk: Disk
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Stray:
    """A disk that a node holds and should not.

    Attributes
    ----------
    disk
        None if the cluster does not know it.
    why
        The end of a sentence: what the disk is instead.
    used
        Whether a guest there has it: then nobody touches it.
    """

    node: Node
    held: Held
    disk: Disk | None
    why: str
    used: bool


def missing(view: View, looks: Sequence[Look]) -> tuple[list[Missing], list[str]]:
    """Return the disks without a volume, and what proves nothing although asked.

    A storage that shows none of several volumes may not be there at all: a directory
    that is not mounted looks so, too.
    """
    there = {key_of(look, volume) for look in looks for volume in look.listed.volumes}
    lost: list[Missing] = []
    empty: list[Look] = []
    index: dict[Place | str, list[Look]] = defaultdict(list)
    for look in looks:
        if not look.listed.problem:
            index[_index(look.place)].append(look)
    for disk in _settled(view):
        part = (disk.children or (disk,))[0]
        listed = index[_index(place_of(view.config, part))]
        found = _covering(view.config, listed, disk, part)
        if not found or not _is_proof(view.config, found, disk):
            continue
        if _is_there(disk, there):
            continue
        bare = [look for look in found if not look.listed.volumes]
        if len(bare) == len(found):
            empty.append(bare[0])
        else:
            nodes = {look.node.uuid: look.node for look in found}
            lost.append(Missing(disk, tuple(nodes.values())))
    told = Counter((look.node.name, *look.unit) for look in empty)
    return lost, [_nothing_there(*where, count) for where, count in told.items()]


def _nothing_there(node: str, template: str, unit: str, count: int) -> str:
    return (
        f"{template} {unit} on node {node} shows nothing at all, and {count} disks "
        "should be there: is that storage there?"
    )


def _settled(view: View) -> Iterator[Disk]:
    """Yield the disks that nobody changed since the nodes were asked."""
    sight = seen(view)
    for disk in view.config.named(Disk):
        before = sight.earlier.objects.get(disk.uuid)
        same = isinstance(before, Disk) and before.logical_id == disk.logical_id
        if same and not sight.busy.intersection(disk.volumes):
            yield disk


def _is_there(disk: Disk, there: set[Key]) -> bool:
    """Whether every volume of a disk was seen, by one of its names."""
    keys = list(keys_of(disk))
    if template_named(disk.dev_type).capabilities.provider:
        return any(key in there for key in keys)
    return all(key in there for key in keys)


def _index(place: Place) -> Place | str:
    """Return under what looks are found: their template; of a provider's, the place."""
    return place if kind_of(place).capabilities.provider else place.template


def _covering(
    config: Config, looks: Sequence[Look], disk: Disk, part: Disk
) -> list[Look]:
    """Return the looks in whose lists a volume of a disk would be."""
    if not looks:
        return []
    kind, group = kind_of(looks[0].place), group_of_or_none(config, disk)
    if kind.capabilities.reach is not Reach.GROUP:
        near = [look for look in looks if look.node.uuid in disk.nodes]
    else:
        near = [look for look in looks if group and look.node.group == group.uuid]
    if kind.capabilities.provider:
        return near
    return [look for look in near if _is_in(look.place, part)]


def _is_in(place: Place, disk: Disk) -> bool:
    """Whether a disk is in the storage unit that a place is."""
    kind, (_, unit) = kind_of(place), unit_at(place)
    if kind.unit_key(dict(place.settings), disk.params, disk.logical_id) != unit:
        return False
    images = kind.capabilities.images
    return not images or PurePosixPath(disk.volume).is_relative_to(unit)


def _is_proof(config: Config, looks: Sequence[Look], disk: Disk) -> bool:
    """Whether those looked who must have seen the volume.

    Of a provider's that is the node that had the disk last; of a disk on nodes of its
    own, each of them.
    """
    told = {look.node.uuid for look in looks}
    able = template_named(disk.dev_type).capabilities
    if able.provider:
        owner = config.owner(disk)
        return (owner.primary_node if owner else disk.last_node) in told
    if able.reach is Reach.GROUP:
        return True
    return set(disk.nodes) <= told


def strays(view: View) -> list[Stray]:
    """Return what nodes hold and should not."""
    return [
        stray
        for node, facts in _facts(view)
        for held in facts.held
        for stray in _stray(view, node, facts, held)
    ]


def _facts(view: View) -> Iterator[tuple[Node, NodeFacts]]:
    for node in view.config.named(Node):
        told = view.told(facts_on(node))
        if told is not None:
            yield node, told


def _stray(view: View, node: Node, facts: NodeFacts, held: Held) -> Iterator[Stray]:
    used = any(held.disk in guest.disks for guest in facts.guests)
    sight = seen(view)
    disk, before = (one.objects.get(held.disk) for one in (view.config, sight.earlier))
    if held.disk in sight.disks or disk != before:
        return  # it changes: what the node said may be over
    if not isinstance(disk, Disk):
        yield Stray(node, held, None, "the cluster knows no such disk", used)
        return
    why = misplaced(view.config, disk, node)
    if why:
        yield Stray(node, held, disk, why, used)


def misplaced(config: Config, disk: Disk, node: Node) -> str:
    """Return why a node should not hold a disk; empty if it may."""
    owner = config.owner(disk)
    if owner is None:
        return "it is attached to no instance"
    if node.uuid == owner.primary_node or copies.keeps(disk, node):
        return ""
    home = config.home(owner).name
    return f"its instance {owner.name} is on node {home}"
