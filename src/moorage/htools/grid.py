# SPDX-License-Identifier: BSD-2-Clause
"""A state as arrays, for `moorage.htools.kernel`."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from mmap import MAP_PRIVATE, mmap

from moorage.htools import kernel_metrics
from moorage.htools.constants import Mirror
from moorage.htools.inst import Inst
from moorage.htools.kernel.columns import (
    I_TAG,
    I_TAGS,
    I_WANT,
    I_WANTS,
    IW,
    W,
)
from moorage.htools.kernel_tables import (
    domains,
    free_choices,
    paths,
    reach,
    unit_tables,
)
from moorage.htools.node import Node, people_on
from moorage.htools.state import State

try:
    from moorage.htools.kernel import assembly
except ImportError:  # built without a compiler, and Cython is not there either
    COMPILED = False
else:
    COMPILED = assembly.compiled

Masks = Callable[[Inst], int]
"""Returns which verbs an instance may use, one bit each."""

Fixed = tuple[float, float, float, float, float]
"""Conflicts, instances and primaries on offline nodes, locations, domains."""

Lists = tuple[tuple[int, int], tuple[int, int]]
"""Where the tags and the wants of an instance start, and how many they are."""


def plain_nodes(state: State) -> bool:
    """Say whether the kernel models the nodes in view.

    It does not model nodes without memory or processors or with an infinite load, nor
    exclusive storage on some nodes only.
    """
    online = [node for node in state.seen if not node.offline]
    if not online or not all(map(_has_sizes, online)):
        return False
    return len({node.exclusive for node in online}) == 1


def movable_spindles(state: State, insts: Iterable[Inst]) -> bool:
    """Say whether the kernel models that instances move, as for their spindles.

    It must know how many each needs where nodes have exclusive storage.
    """
    if not any(node.exclusive for node in state.seen):
        return True
    return all(inst.total_spindles is not None for inst in insts)


def _has_sizes(node: Node) -> bool:
    return bool(node.mem_total and node.cpus and node.cpu_speed and node.spindle_limit)


def classic_nodes(state: State) -> bool:
    """Say whether nothing but memory, disk and processors decides where to go."""
    return not any(
        node.exclusive
        or node.location_tags
        or node.mig_from
        or node.mig_into
        or node.units is not None
        for node in state.seen
    )


def is_plain(inst: Inst, view: set[int]) -> bool:
    """Say whether the kernel models an instance; infinite loads it does not."""
    if not isfinite(sum(inst.load)):
        return False
    if inst.p not in view or (inst.s >= 0 and inst.s not in view):
        return False
    return inst.mirror is not Mirror.INTERNAL or inst.s >= 0


def node_columns(node: Node) -> list[float]:
    """Return a node as the kernel's row, shape (29,)."""
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
        float(node.exclusive),
        node.spindles_free,
        node.spindles_free_all,
        node.spindles,
        float(node.units is not None),
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
        self.rows = array("d", bytes(8 * (n + 3) * W))
        self.insts = array("d", bytes(8 * max(1, m) * IW))
        # Pages of their own: those that nobody touches take neither memory nor time.
        self.peers = memoryview(mmap(-1, 8 * max(1, n * n), MAP_PRIVATE)).cast("d")
        self.tagged = array("d", bytes(8 * max(1, n * t)))
        self.planned = [inst.idx for inst in insts if inst.forthcoming]
        self.units = unit_tables(state.seen, insts)
        self.domains = domains(state.seen, insts, self.tags, m)
        for at in state.view:
            self._fill_node(state, at)
        taglist = self._instances(insts, masks)
        counted = self.units.counted if self.units else 0
        nodes = {place: state.nodes[at] for at, place in self.places.items()}
        online = [place for place, node in nodes.items() if not node.offline]
        arrays = (
            *(self.rows, self.insts, self.peers, self.tagged, taglist),
            *kernel_metrics.arrays(
                kernel_metrics.Rows(self.rows, online, self.insts, len(insts)),
                exclusive=any(nodes[place].exclusive for place in online),
                units=counted,
            ),
        )
        units = (len(self.units.names), counted) if self.units else (0, 0)
        self.kernel = assembly.Kernel(arrays, (n, m, t, *units), force)
        self._tell(state, insts, m)
        self.kernel.prepare(self.fixed(state))

    def _tell(self, state: State, insts: Sequence[Inst], room: int) -> None:
        """Tell the kernel what few clusters have."""
        ways, known = paths(state.seen), reach(state.seen, insts, room)
        choices = free_choices(state.seen, insts, room)
        if ways is not None:
            self.kernel.know_paths(ways)
        if known is not None:
            self.kernel.know_reach(*known)
        if choices is not None:
            self.kernel.know_choices(*choices)
        if self.domains is not None:
            tables = self.domains.stands, self.domains.wishes, self.domains.crowd
            self.kernel.know_places(len(self.domains.names), *tables)
        if self.units is not None:
            units = self.units
            tables_of = units.stock, units.totals, units.floors, units.kinds, units.seen
            self.kernel.know_units(tables_of, units.wanted, units.sizes)

    @property
    def changing(self) -> "list[array[float]]":
        """The arrays that change when the kernel restarts somebody, but `peers`."""
        found = [self.rows, self.tagged]
        if self.domains is not None:
            found.append(self.domains.crowd)
        if self.units is not None:
            found.append(self.units.stock)
        return found

    def fixed(self, state: State) -> Fixed:
        """Return the parts of the score that are counted, not spread."""
        crowded = 0.0 if self.domains is None else self.domains.renew(state)
        return (*fixed(state), crowded)

    def put_node(self, state: State, at: int) -> None:
        """Renew the columns of a node."""
        place, n = self.places[at], len(self.places)
        self.peers[place * n : (place + 1) * n] = array("d", bytes(8 * n))
        self._fill_node(state, at)

    def _fill_node(self, state: State, at: int) -> None:
        """Write the columns of a node that has no peers yet."""
        node, place, n = state.nodes[at], self.places[at], len(self.places)
        self.rows[place * W : (place + 1) * W] = array("d", node_columns(node))
        for peer, mem in node.peers.items():
            if peer in self.places:
                self.peers[place * n + self.places[peer]] = mem
        for tag, column in self.tags.items():
            self.tagged[place * len(self.tags) + column] = node.excl.get(tag, 0)
        if self.units is not None:
            self.units.renew(place, node)

    def _instances(self, insts: Sequence[Inst], masks: Masks) -> "array[int]":
        taglist = array("i")
        for place, inst in enumerate(insts):
            tags = len(taglist), len(inst.excl_tags)
            taglist.extend(self.tags[tag] for tag in inst.excl_tags)
            wants = self.units.spans[place] if self.units else (0, 0)
            self._put(place, inst, masks(inst), (tags, wants))
        taglist.append(0)
        return taglist

    def _put(self, place: int, inst: Inst, mask: int, lists: Lists) -> None:
        """Write the columns of an instance."""
        (tag, tags), (want, wants) = lists
        row = [
            inst.mem,
            inst.dsk if inst.local else 0,
            inst.vcpus if inst.counts_cpu else 0,
            inst.spindle_use if inst.local else 0,
            inst.mem if inst.uses_mem else 0,
            inst.mem if inst.uses_sec_mem else 0,
            float(inst.local),
            self.places.get(inst.p, 0),
            self.places.get(inst.s, -1),
            *inst.load,
            *(tag, tags, mask, float(not inst.forthcoming)),
            *(-1 if inst.total_spindles is None else inst.total_spindles,),
            *(inst.location, len(inst.desired)),
            *(want, wants),
        ]
        self.insts[place * IW : (place + 1) * IW] = array("d", row)

    def put_instance(self, place: int, inst: Inst, masks: Masks) -> None:
        """Renew the columns of an instance; its tags and wants stay."""
        told = [
            int(self.insts[place * IW + at]) for at in (I_TAG, I_TAGS, I_WANT, I_WANTS)
        ]
        self._put(place, inst, masks(inst), ((told[0], told[1]), (told[2], told[3])))

    def renew(self, old: State, new: State, masks: Masks) -> list[int]:
        """Take over what changed; return the places of the nodes that did."""
        touched = changed_nodes(old, new)
        nodes = [new.nodes[at] for at in touched]
        # Who moved is on a node that changed; nodes do not list who is only planned.
        for idx in people_on(nodes).union(self.planned):
            place = self.place_of.get(idx)
            if place is not None and new.insts[idx] is not old.insts[idx]:
                self.put_instance(place, new.insts[idx], masks)
        self.renew_nodes(new, touched)
        return [self.places[at] for at in touched]

    def renew_nodes(self, state: State, touched: Iterable[int]) -> None:
        """Take over nodes that changed."""
        for at in touched:
            self.put_node(state, at)
        self.kernel.prepare(self.fixed(state))

    @property
    def is_full(self) -> bool:
        """Whether no spare place is left."""
        return (len(self.movers) + 1) * IW > len(self.insts)

    def add_instance(self, inst: Inst, masks: Masks) -> int:
        """Take one more instance, without tags, into a spare place; return it."""
        place = len(self.movers)
        self.movers.append(inst.idx)
        self.place_of[inst.idx] = place
        self.put_instance(place, inst, masks)
        return place


def fixed(state: State) -> tuple[float, float, float, float]:
    """Return conflicts, instances and primaries on offline nodes, and locations."""
    conflicts = everybody = primaries = location = 0
    for node in state.seen:
        if node.offline:
            everybody += len(node.primaries) + len(node.secondaries)
            primaries += len(node.primaries)
        else:
            conflicts += node.conflicts if node.excl else 0
            location += node.location
    return float(conflicts), float(everybody), float(primaries), float(location)
