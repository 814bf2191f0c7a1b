# SPDX-License-Identifier: BSD-2-Clause
"""Losing nodes, fast: `moorage.htools.survival.n1` on the kernel's arrays."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import takewhile

from moorage.disk_templates import FACTS
from moorage.htools.constants import Mirror
from moorage.htools.grid import (
    COMPILED,
    Grid,
    changed_nodes,
    classic_nodes,
    is_plain,
    movable_spindles,
    plain_nodes,
)
from moorage.htools.inst import Inst
from moorage.htools.kernel.columns import CAN_F, CAN_FA
from moorage.htools.node import Node
from moorage.htools.policy import breach
from moorage.htools.state import State

_SPARE = 256


def in_order(state: State, lost: int) -> list[Inst]:
    """Return who must restart: mirrored, shared, then local, largest first.

    Of equals the last one of the cluster begins. That is the order of a node that was
    just loaded; the order in which moves brought them here would give another answer
    before a plan is saved than after.
    """
    people = [
        state.insts[at] for at in sorted(state.nodes[lost].primaries, reverse=True)
    ]
    mirrored = [i for i in people if i.mirror is Mirror.INTERNAL]
    if len(mirrored) == len(people):
        return mirrored
    shared = [i for i in people if is_shared(i)]
    rest = [i for i in people if i.mirror is not Mirror.INTERNAL and not is_shared(i)]
    rest.sort(key=lambda inst: -inst.mem)
    return [*mirrored, *shared, *rest]


def is_shared(inst: Inst) -> bool:
    """Say whether the instance moves as it is; block devices are set up anew."""
    return inst.mirror is Mirror.EXTERNAL and not FACTS[inst.template].by_hand


class Losses:
    """One group of a state, to lose its nodes one by one.

    An instance changes together with its primary only, so what a node is part
    of stands as long as the node does.

    Parameters
    ----------
    state
        The group's nodes are in view.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = set(state.view)
        known = plain_nodes(state) and movable_spindles(state, state.people)
        self.usable = COMPILED and known
        self.classic = classic_nodes(state)
        self.grid: Grid | None = None
        self.places: dict[int, int] = {}
        self.held: dict[int, Inst] = {}
        self.fixed = (0.0, 0.0, 0.0, 0.0, 0.0)
        self.orders: dict[int, list[Inst]] = {}
        self.verdicts: dict[int, bool] = {}
        self.needs: dict[int, dict[int, int]] = {}
        self.leaners: defaultdict[int, set[int]] = defaultdict(set)
        self.slots: dict[int, list[int]] = {}
        self.mirrored: bool | None = None
        self.busy: set[int] = set()

    def follow(self, state: State) -> bool:
        """Turn to another state of the same nodes; say whether that works."""
        old = self.state
        if old.view != state.view or old.fleet is not state.fleet:
            return False
        touched = changed_nodes(old, state)
        self.state = state
        self.mirrored = None if touched else self.mirrored
        for at in touched:
            self.orders.pop(at, None)
            self.slots.pop(at, None)
            self.verdicts.pop(at, None)
        for at in touched:
            self._doubt(at)
        return self.grid is None or not touched or self._renew(self.grid, touched)

    def _doubt(self, at: int) -> None:
        """Forget what a node's change may refute: who fails over to it."""
        node = self.state.nodes[at]
        for lost in self.leaners[at]:
            mem = self.needs[lost].get(at, 0)
            if lost in self.verdicts and not (
                self.verdicts[lost] and _can_run(node, mem)
            ):
                del self.verdicts[lost]

    def _renew(self, grid: Grid, touched: Sequence[int]) -> bool:
        """Bring the arrays up to date; say whether they could be."""
        for at in touched:
            if any(tag not in grid.tags for tag in self.state.nodes[at].excl):
                return False
            for idx in self.state.nodes[at].primaries:
                inst = self.state.insts[idx]
                known = self.held.get(idx)
                if known is not inst and not self._put(grid, inst):
                    return False
                if known and _kept(known) != _kept(inst):
                    return False  # another one, which has the number now
        for at in touched:
            grid.put_node(self.state, at)
        self.fixed = grid.fixed(self.state)
        return True

    def _put(self, grid: Grid, inst: Inst) -> bool:
        """Put an instance into the arrays; say whether there is room."""
        self.held[inst.idx] = inst
        if not is_plain(inst, self.view):
            self.places.pop(inst.idx, None)
            return True
        if inst.idx in self.places:
            grid.put_instance(self.places[inst.idx], inst, _mask)
            return True
        # The arrays join columns that were equal; they must stay so.
        if inst.excl_tags or not inst.uses_mem or len(set(inst.load)) > 1:
            return False
        if inst.reach is not None or inst.desired or inst.wants:
            return False
        if grid.is_full:
            return False
        self.places[inst.idx] = grid.add_instance(inst, _mask)
        return True

    def survives(self, lost: int) -> bool | None:
        """Say whether everybody restarts; None when that is not modelled.

        The answer is that of `moorage.htools.survival.n1.survive`.
        """
        if not self.usable:
            return None
        known = self.verdicts.get(lost)
        if known is not None:
            return known
        order = self._order(lost)
        if not order:
            return True
        if order[-1].mirror is Mirror.INTERNAL and self.classic:
            return self._fails_over(lost, order)
        return self._restarts(lost, order)

    def bears(self, inst: Inst, p: int, s: int) -> bool | None:
        """Say whether all losses are survived with one more, if all are without.

        Everybody must be mirrored, else None. They only ever need memory on
        their secondaries: the new one takes some on `p`, and asks for some on
        `s` when `p` is lost.
        """
        if inst.mirror is not Mirror.INTERNAL or inst.forthcoming:
            return None
        if not self.classic or not self.is_mirrored:
            return None
        if len(self.verdicts) < len(self.busy):
            return None
        mem = inst.mem if inst.uses_mem else 0
        nodes = self.state.nodes
        others = (self.needs[at].get(p, 0) for at in self.leaners[p] if at != p)
        asked = self.needs[p].get(s, 0) if p in self.busy else 0
        return (
            max(others, default=0) < nodes[p].unallocated - mem
            and asked + mem < nodes[s].unallocated
        )

    @property
    def is_mirrored(self) -> bool:
        """Whether the kernel models the nodes and everybody on them is mirrored.

        Then one more cannot make a loss survivable that is not.
        """
        if self.mirrored is None:
            orders = {at: self._order(at) for at in self.state.view}
            self.busy = {at for at, order in orders.items() if order}
            self.mirrored = self.usable and all(
                orders[at][-1].mirror is Mirror.INTERNAL
                and all(is_plain(inst, self.view) for inst in orders[at])
                for at in self.busy
            )
        return self.mirrored

    def _order(self, lost: int) -> list[Inst]:
        order = self.orders.get(lost)
        if order is None:
            order = self.orders[lost] = in_order(self.state, lost)
        return order

    def _fails_over(self, lost: int, order: Sequence[Inst]) -> bool | None:
        """Say whether mirrored instances alone can run on their secondaries.

        Disks stay where they are, and a node without free disk takes nobody.
        """
        if not all(is_plain(inst, self.view) for inst in order):
            return None
        need: defaultdict[int, int] = defaultdict(int)
        for inst in order:
            need[inst.s] += inst.mem if inst.uses_mem else 0
        self.needs[lost] = need
        for at in need:
            self.leaners[at].add(lost)
        nodes = self.state.nodes
        safe = (nodes[lost].offline or nodes[lost].disk_free > 0) and all(
            _can_run(nodes[at], mem) for at, mem in need.items()
        )
        self.verdicts[lost] = safe
        return safe

    def _restarts(self, lost: int, order: Sequence[Inst]) -> bool | None:
        grid = self._loaded()
        slots = self.slots.get(lost)
        if slots is None:
            if any(inst.idx not in self.places for inst in order):
                return None
            slots = [self.places[inst.idx] for inst in order]
            self.slots[lost] = slots
        place = grid.places[lost]
        # The last ones are made anew, if any are.
        as_they_are = is_movable(order[-1])
        known = grid.kernel.verdict(slots, place) if as_they_are else 0
        if known:
            return known > 0
        undo = self._undo(grid, order)
        grid.kernel.reset(self.fixed)
        if as_they_are:
            done = grid.kernel.lose(slots, place)
        else:
            done = all(self._restart(grid, inst, place) >= 0 for inst in order)
        undo()
        return done

    def _undo(self, grid: Grid, order: Sequence[Inst]) -> Callable[[], None]:
        """Return what puts the arrays back; a copy of peers grows with n squared."""
        kept, n = [(table, table[:]) for table in grid.changing], len(grid.places)
        mirrored = takewhile(lambda inst: inst.mirror is Mirror.INTERNAL, order)
        places = [grid.places[i.s] * n + grid.places[i.p] for i in mirrored]
        places += [at % n * n + at // n for at in places]
        peers = {at: grid.peers[at] for at in places}

        def undo() -> None:
            for table, values in kept:
                table[:] = values
            for at, value in peers.items():
                grid.peers[at] = value

        return undo

    def _restart(self, grid: Grid, inst: Inst, lost: int) -> int:
        if is_movable(inst):
            return grid.kernel.restart(self.places[inst.idx], lost)
        open_places = [
            place
            for at, place in grid.places.items()
            if place != lost and self._takes(self.state.nodes[at], inst)
        ]
        return grid.kernel.anew(self.places[inst.idx], open_places)

    def _takes(self, node: Node, inst: Inst) -> bool:
        """Say whether a node is there, reaches the disks, and its policy agrees."""
        if node.offline or (inst.reach is not None and node.idx not in inst.reach):
            return False
        return breach(node.policy, inst, exclusive=node.exclusive) is None

    def _loaded(self) -> Grid:
        if self.grid is None:
            people = self.state.people
            movers = [inst for inst in people if is_plain(inst, self.view)]
            self.grid = Grid(self.state, movers, _mask, force=True, spare=_SPARE)
            self.places = {inst.idx: place for place, inst in enumerate(movers)}
            self.held = {inst.idx: inst for inst in movers}
            self.fixed = self.grid.fixed(self.state)
        return self.grid


def _can_run(node: Node, mem: int) -> bool:
    return not node.offline and node.unallocated > mem and node.disk_free > 0


def _mask(inst: Inst) -> int:
    return CAN_F if inst.mirror is Mirror.INTERNAL else CAN_FA


def is_movable(inst: Inst) -> bool:
    """Say whether an instance restarts as it is, rather than being made anew."""
    return inst.mirror is Mirror.INTERNAL or is_shared(inst)


def _kept(inst: Inst) -> tuple[object, ...]:
    """Return what the arrays keep of an instance for good."""
    return inst.wants, inst.reach, inst.excl_tags, inst.desired
