# SPDX-License-Identifier: BSD-2-Clause
"""Disks without a volume, and nodes that hold a disk which should not be there."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from moorage.errors import MoorageError
from moorage.jobs import View
from moorage.model import Config, Disk, Held, Node, NodeFacts
from moorage.ops import copies
from moorage.ops.node_tasks import facts_on
from moorage.storage import Reach, template_named

from .directories import place_of
from .survey import Key, Look, group_of_or_none, key_of, keys_of, kind_of, seen, unit_of


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
    of_template: dict[str, list[Look]] = defaultdict(list)
    for look in looks:
        of_template[look.place.template].append(look)
    for disk in _settled(view):
        near = of_template[(disk.children or (disk,))[0].dev_type]
        found = [look for look in near if _covers(view.config, look, disk)]
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


def _covers(config: Config, look: Look, disk: Disk) -> bool:
    """Whether a disk would be in the list that a node told."""
    part = (disk.children or (disk,))[0]
    kind = kind_of(look.place)
    if look.listed.problem:
        return False
    if kind.capabilities.reach is not Reach.GROUP:
        near = look.node.uuid in disk.nodes
    else:
        group = group_of_or_none(config, disk)
        near = group is not None and group.uuid == look.node.group
    settings = dict(look.place.settings)
    unit = kind.unit_key(settings, part.params, part.logical_id)
    if not near or unit != unit_of(look.place)[1]:
        return False
    if kind.capabilities.images:
        return PurePosixPath(part.volume).is_relative_to(unit)
    if kind.capabilities.provider:
        return place_of(config, disk) == look.place
    return True


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


# -- attachments -----------------------------------------------------------------------


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
        try:
            told = view.answer(facts_on(node))
        except MoorageError:
            continue
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
    home = config.node(owner.primary_node).name
    return f"its instance {owner.name} is on node {home}"
