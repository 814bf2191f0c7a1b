# SPDX-License-Identifier: BSD-2-Clause
"""A state as arrays, for `moorage.htools.kernel`."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.state import State
from moorage.htools.words import Mirror

try:
    from moorage.htools import kernel
except ImportError:  # built without a compiler, and Cython is not there either
    COMPILED = False
else:
    COMPILED = kernel.compiled

_W, _IW = 24, 16
"""Columns of a node and of an instance, as `moorage.htools.kernel.columns` has them."""

Masks = Callable[[Inst], int]
"""Returns which verbs an instance may use, one bit each."""


def plain_nodes(state: State) -> bool:
    """Say whether the kernel models the nodes in view."""
    if all(node.offline for node in state.seen):
        return False
    return not any(_odd(node) for node in state.seen)


def _odd(node: Node) -> bool:
    sizes = (node.mem_total, node.cpus, node.cpu_speed, node.spindle_limit)
    return bool(
        node.exclusive
        or node.location_tags
        or node.mig_from
        or node.mig_into
        or node.units is not None
        or (not node.offline and not all(sizes))
    )


def is_plain(inst: Inst, view: set[int]) -> bool:
    """Say whether the kernel models an instance."""
    if inst.forthcoming or inst.desired or inst.reach is not None:
        return False
    if inst.p not in view or (inst.s >= 0 and inst.s not in view):
        return False
    return inst.mirror is not Mirror.INTERNAL or inst.s >= 0


def node_columns(node: Node) -> list[float]:
    """Return a node as the kernel's row, shape (24,)."""
    return [
        node.mem_total,
        node.unallocated,
        node.reserved,
        float(node.fails_n1),
        node.disk_free,
        node.disk_total,
        node.disk_floor,
        node.cpu_used,
        node.cpus,
        node.cpu_speed,
        node.policy.vcpu_ratio,
        node.spindles_used,
        node.spindle_limit,
        *node.load,
        len(node.primaries),
        len(node.secondaries),
        float(node.offline),
        node.mem_free_all,
        node.disk_free_all,
        node.cpu_used_all,
        node.spindles_used_all,
    ]


def changed_nodes(old: State, new: State) -> list[int]:
    """Return the nodes in view that two states do not share."""
    before, after = old.nodes, new.nodes
    return [at for at in new.view if after[at] is not before[at]]


class Grid:
    """A state in the kernel's arrays."""

    def __init__(
        self,
        state: State,
        movers: Iterable[Inst],
        masks: Masks,
        *,
        force: bool = False,
        spare: int = 0,
    ) -> None:
        self.places = {at: place for place, at in enumerate(state.view)}
        insts = list(movers)
        self.movers = [inst.idx for inst in insts]
        self.place_of = {idx: place for place, idx in enumerate(self.movers)}
        names = dict.fromkeys(tag for at in state.view for tag in state.nodes[at].excl)
        names |= dict.fromkeys(tag for inst in insts for tag in inst.excl_tags)
        self.tags = {tag: place for place, tag in enumerate(names)}
        n, m, t = len(state.view), len(self.movers) + spare, len(self.tags)
        self.rows = array("d", bytes(8 * (n + 3) * _W))
        self.insts = array("d", bytes(8 * max(1, m) * _IW))
        self.peers = array("d", bytes(8 * n * n))
        self.tagged = array("d", bytes(8 * max(1, n * t)))
        for at in state.view:
            self.put_node(state, at)
        taglist = self._instances(insts, masks)
        active, merged = _merged(state, insts)
        arrays = (
            self.rows,
            self.insts,
            self.peers,
            self.tagged,
            taglist,
            active,
            merged,
        )
        self.kernel = kernel.Kernel(arrays, n, m, t, force)
        self.kernel.prepare(fixed(state))

    def put_node(self, state: State, at: int) -> None:
        """Renew the columns of a node."""
        node, place, n = state.nodes[at], self.places[at], len(self.places)
        self.rows[place * _W : (place + 1) * _W] = array("d", node_columns(node))
        self.peers[place * n : (place + 1) * n] = array("d", bytes(8 * n))
        for peer, mem in node.peers.items():
            if peer in self.places:
                self.peers[place * n + self.places[peer]] = mem
        for tag, column in self.tags.items():
            self.tagged[place * len(self.tags) + column] = node.excl.get(tag, 0)

    def _instances(self, insts: Sequence[Inst], masks: Masks) -> "array[int]":
        taglist = array("i")
        for place, inst in enumerate(insts):
            start = len(taglist)
            taglist.extend(self.tags[tag] for tag in inst.excl_tags)
            row = self._row(inst, start, len(inst.excl_tags), masks(inst))
            self.insts[place * _IW : (place + 1) * _IW] = array("d", row)
        taglist.append(0)
        return taglist

    def _row(self, inst: Inst, start: int, tags: int, mask: int) -> list[float]:
        return [
            inst.mem,
            inst.dsk,
            inst.vcpus if inst.counts_cpu else 0,
            inst.spindle_use,
            inst.mem if inst.uses_mem else 0,
            inst.mem if inst.uses_sec_mem else 0,
            float(inst.local),
            self.places.get(inst.p, 0),
            self.places.get(inst.s, -1),
            *inst.load,
            start,
            tags,
            mask,
        ]

    def put_instance(self, place: int, inst: Inst, masks: Masks) -> None:
        """Renew the columns of an instance; its tags stay."""
        row = place * _IW
        tags = int(self.insts[row + 13]), int(self.insts[row + 14])
        columns = self._row(inst, *tags, masks(inst))
        self.insts[row : row + _IW] = array("d", columns)

    def renew(self, old: State, new: State, masks: Masks) -> list[int]:
        """Take over what changed; return the places of the nodes that did."""
        touched = changed_nodes(old, new)
        nodes = [new.nodes[at] for at in touched]
        # Who moved is on a node that changed.
        people = {idx for n in nodes for idx in (*n.primaries, *n.secondaries)}
        for idx in people:
            place = self.place_of.get(idx)
            if place is not None and new.insts[idx] is not old.insts[idx]:
                self.put_instance(place, new.insts[idx], masks)
        self.renew_nodes(new, touched)
        return [self.places[at] for at in touched]

    def renew_nodes(self, state: State, touched: Iterable[int]) -> None:
        """Take over nodes that changed."""
        for at in touched:
            self.put_node(state, at)
        self.kernel.prepare(fixed(state))

    @property
    def is_full(self) -> bool:
        """Whether no spare place is left."""
        return (len(self.movers) + 1) * _IW > len(self.insts)

    def add_instance(self, inst: Inst, masks: Masks) -> int:
        """Take one more instance, without tags, into a spare place; return it."""
        place = len(self.movers)
        self.movers.append(inst.idx)
        self.place_of[inst.idx] = place
        self.put_instance(place, inst, masks)
        return place


def fixed(state: State) -> tuple[float, float, float, float, float]:
    """Return the parts of the score that are counted, not spread."""
    conflicts = everybody = primaries = location = 0
    for node in state.seen:
        if node.offline:
            everybody += len(node.primaries) + len(node.secondaries)
            primaries += len(node.primaries)
        else:
            conflicts += node.conflicts if node.excl else 0
            location += node.location
    return float(conflicts), float(everybody), float(primaries), float(location), 0.0


_WEIGHTS: Final = (0.5, 0.5, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5)


def _merged(state: State, movers: Sequence[Inst]) -> "tuple[array[int], array[float]]":
    """Return the spread metrics that differ, and their weights with equals.

    With nothing planned and everything as recorded, the metrics that count
    planned instances equal those that do not; without measured loads, three of
    the four are one.
    """
    nodes = [node for node in state.seen if not node.offline]
    plain_mem = all(inst.uses_mem for inst in movers)
    equal = {
        9: (0, plain_mem and all(n.mem_free_all == n.unallocated for n in nodes)),
        10: (1, all(n.disk_free_all == n.disk_free for n in nodes)),
        11: (3, all(n.cpu_used_all == n.cpu_used for n in nodes)),
        12: (8, all(n.spindles_used_all == n.spindles_used for n in nodes)),
        5: (4, _same_load(nodes, movers, 1)),
        7: (4, _same_load(nodes, movers, 3)),
    }
    # The reserve first: it is the one that is no multiple of what comes and goes.
    weights = {2: _WEIGHTS[2]} | dict(enumerate(_WEIGHTS))
    for column, (twin, holds) in equal.items():
        if holds:
            weights[twin] += weights.pop(column)
    return array("i", weights), array("d", weights.values())


def _same_load(nodes: Sequence[Node], movers: Sequence[Inst], at: int) -> bool:
    return all(node.load[at] == node.load[0] for node in nodes) and all(
        inst.load[at] == inst.load[0] for inst in movers
    )
