# SPDX-License-Identifier: BSD-2-Clause
"""Another way: places for everybody on a lost node, where the usual order has none.

Restarting one after the other, each on the node that is best then, is what happens in
practice; it can strand somebody though a way exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from moorage.htools.constants import Mirror
from moorage.htools.inst import Inst
from moorage.htools.moves import FA, FAILOVER, Move, Moved, apply
from moorage.htools.single_placement import Placement, place_one
from moorage.htools.state import State
from moorage.htools.survival.kernel_losses import in_order, is_shared

Way = tuple[tuple[int, int], ...]
"""Instances, and the nodes on which they restart, in order."""

TRIES: Final = 20_000
"""Restarts that `another_way` tries before it gives up."""


def restarted(state: State, inst: Inst, at: int) -> State | None:
    """Return the state after a restart on a node; None when that cannot be."""
    if not (inst.mirror is Mirror.INTERNAL or is_shared(inst)):
        placed = place_one(state, inst, at, force=True)
        if isinstance(placed, Placement):
            return state.with_nodes(placed.moved.nodes)
        return None
    move = FAILOVER if inst.mirror is Mirror.INTERNAL else Move(FA, at)
    moved = apply(state.nodes, inst, move, force=True)
    return state.after(moved) if isinstance(moved, Moved) else None


def mates(state: State, lost: int) -> list[int]:
    """Return the other nodes of a node's group."""
    group = state.nodes[lost].group
    return [at for at in state.view if at != lost and state.nodes[at].group == group]


@dataclass(slots=True)
class _Search:
    """Every assignment of the stranded, tried until one holds."""

    refuges: Sequence[int]
    tries: int = TRIES

    def rest(self, state: State, people: Sequence[Inst]) -> Way | None:
        """Return places for everybody; None when there is no way, or no time."""
        if not people:
            return ()
        inst = people[0]
        seen: set[tuple[object, ...]] = set()
        for at in self._places(inst):
            self.tries -= 1
            if self.tries < 0:
                return None
            after = self._placed(state, inst, at, seen)
            rest = None if after is None else self.rest(after, people[1:])
            if rest is not None:
                return ((inst.idx, at), *rest)
        return None

    def _places(self, inst: Inst) -> Sequence[int]:
        if inst.mirror is Mirror.INTERNAL:
            return [inst.s] if inst.s in self.refuges else []
        return self.refuges

    def _placed(
        self, state: State, inst: Inst, at: int, seen: set[tuple[object, ...]]
    ) -> State | None:
        """Try a node, unless one just like it was tried."""
        node = state.nodes[at]
        reached = inst.reach is None or at in inst.reach
        kind = (node.unallocated, node.disk_free, node.units, reached)
        like = (*kind, node.mig_into, node.policy, node.spindles_free)
        if like in seen:
            return None
        seen.add(like)
        return restarted(state, inst, at)


def another_way(state: State, lost: int, tries: int = TRIES) -> tuple[Way | None, bool]:
    """Return a way for everybody to restart, and whether every way was tried.

    Parameters
    ----------
    tries
        How many single restarts to try before giving up.
    """
    people = in_order(state, lost)
    # The largest first: what cannot be placed is found out early.
    people.sort(key=lambda one: (one.mirror is not Mirror.INTERNAL, -one.mem))
    refuges = [at for at in mates(state, lost) if not state.nodes[at].offline]
    if _is_hopeless(state, people, refuges):
        return None, True
    search = _Search(refuges, tries)
    way = search.rest(state, people)
    return way, way is not None or search.tries >= 0


def _is_hopeless(state: State, people: Sequence[Inst], refuges: Sequence[int]) -> bool:
    """Say whether memory alone forbids every way; each refuge must keep some."""
    needs = [inst.mem for inst in people if inst.uses_mem]
    free = [max(0, state.nodes[at].unallocated) for at in refuges]
    return bool(needs) and (
        max(needs) >= max(free, default=0) or sum(needs) >= sum(free)
    )


def is_way(state: State, lost: int, way: Way) -> bool:
    """Say whether everybody on a node can restart as `another_way` said elsewhere."""
    if {inst for inst, _ in way} != set(state.nodes[lost].primaries):
        return False
    here: State | None = state
    for inst, at in way:
        if here is None or state.nodes[at].offline:
            return False
        here = restarted(here, here.insts[inst], at)
    return here is not None
