# SPDX-License-Identifier: BSD-2-Clause
"""How much still fits: the allocation step of `hail`, iterated.

The same size again and again, until nothing fits. `moorage.htools.placement.tiered`
goes on with smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from moorage.htools.constants import Fail, Mirror
from moorage.htools.fleet import Disk, InstanceRow
from moorage.htools.inst import Inst
from moorage.htools.placement.allocate import (
    DEFAULT_ASKING,
    Allocation,
    Places,
    Predicate,
    try_allocate,
)
from moorage.htools.placement.kernel_search import ArrayCache
from moorage.htools.placement.requests import newcomer
from moorage.htools.state import State
from moorage.htools.survival.n1 import Guard

BIG_STEP: Final = 10
HUGE_STEP: Final = 20


@dataclass(frozen=True, slots=True)
class Size:
    """What one instance asks for: MiB, MiB, processors, spindles."""

    mem: int
    disk: int
    cpu: int
    spindles: int = 1


@dataclass(frozen=True, slots=True)
class Filled:
    """A cluster filled up.

    Attributes
    ----------
    failures : dict
        How often each reason stopped the last attempt.
    new : tuple of Inst
        What was placed, in order.
    """

    failures: dict[Fail, int]
    state: State
    new: tuple[Inst, ...] = ()

    @property
    def reasons(self) -> list[tuple[Fail, int]]:
        """The reasons, the most frequent first; all of them where nothing was tried."""
        counts = self.failures or dict.fromkeys(Fail, 0)
        return sorted(counts.items(), key=lambda pair: -pair[1])

    @property
    def sizes(self) -> list[tuple[Size, int]]:
        """Runs of equal sizes with their lengths, in order."""
        runs: list[tuple[Size, int]] = []
        for inst in self.new:
            size = size_of(inst)
            if runs and runs[-1][0] == size:
                runs[-1] = (size, runs[-1][1] + 1)
            else:
                runs.append((size, 1))
        return runs


@dataclass(frozen=True, slots=True)
class Filling:
    """How to fill a cluster.

    Attributes
    ----------
    places : sequence
        Where to try, as `moorage.htools.placement.allocate.targets` returns it.
    safe : Predicate or None
        What must stay true; None to fill without a thought for failures.
    limit : int or None
        Largest number of new instances.
    mirrors : bool
        Whether it is asked of mirrored ones, too: the master does, Ganeti's hspace not.
    shelf : ArrayCache
        Keeps the arrays of the last state.
    """

    places: Places
    safe: Predicate | None
    limit: int | None = None
    mirrors: bool = False
    shelf: ArrayCache = field(default_factory=ArrayCache)


def size_of(inst: Inst) -> Size:
    """Return the size of an instance."""
    spindles = inst.disks[0].spindles if len(inst.disks) == 1 else None
    return Size(inst.mem, inst.dsk, inst.vcpus, spindles or 0)


def row_of(name: str, size: Size, template: str, spindle_use: int) -> InstanceRow:
    """Return the row of an instance of a size."""
    return InstanceRow(
        name=name,
        mem=size.mem,
        disk=size.disk,
        vcpus=size.cpu,
        template=template,
        spindle_use=spindle_use,
        disks=(Disk(size.disk, size.spindles),),
    )


def model(state: State, size: Size, template: str, spindle_use: int) -> Inst:
    """Return an instance of a size, to be placed again and again."""
    return newcomer(state, row_of("new", size, template, spindle_use))


class Safety:
    """The predicate that filling must leave true; it remembers its last answer.

    Parameters
    ----------
    online_only
        Pass over nodes that are lost already.
    skip
        Groups that do not matter.
    start
        What must be losable only if it was so in this state.
    """

    def __init__(
        self,
        *,
        online_only: bool = False,
        skip: Sequence[int] = (),
        start: State | None = None,
    ) -> None:
        self.guard = Guard(online_only=online_only, skip_groups=skip, start=start)
        self.last: tuple[State, bool] | None = None

    def __call__(self, state: State) -> bool:
        """Say whether any one node can be lost."""
        if self.last is None or self.last[0] is not state:
            self.last = state, self.guard(state)
        return self.last[1]

    def foresee(self, state: State, inst: Inst, nodes: tuple[int, ...]) -> bool | None:
        """Say the same of a state with one more instance; None if it takes trying."""
        return self.guard.foresee(state, inst, nodes)


def fill(state: State, inst: Inst, how: Filling) -> Filled:
    """Place the same instance until nothing fits any more."""
    return fill_on(Filled({}, state), inst, how)


def fill_on(start: Filled, inst: Inst, how: Filling) -> Filled:
    """Return a filling carried on with an instance of some size."""
    if how.safe is None or (inst.mirror is Mirror.INTERNAL and not how.mirrors):
        return _one_by_one(start, inst, replace(how, safe=None))
    if how.limit != 0:
        first = try_next(start.state, inst, len(start.new), how)
        if first.best is None:
            return Filled(first.failures, start.state, start.new)
    return _in_batches(start, inst, how, how.safe)


def _one_by_one(
    start: Filled, inst: Inst, how: Filling, trail: list[Filled] | None = None
) -> Filled:
    """Place until nothing fits, and say why.

    With a trail, leave every tenth state there, and do not ask what would stop
    the one beyond the limit.
    """
    state, new, left = start.state, list(start.new), how.limit
    while True:
        placed = len(new) - len(start.new)
        if trail is not None and placed and placed % BIG_STEP == 0:
            trail.append(Filled({}, state, tuple(new)))
        if trail is not None and left == 0:
            return Filled({}, state, tuple(new))
        found = try_next(state, inst, len(new), how)
        if found.best is None or left == 0:
            return Filled(found.failures, state, tuple(new))
        state = state.with_new(found.best.moved)
        new.append(found.best.moved.inst)
        left = None if left is None else left - 1


def try_next(state: State, inst: Inst, number: int, how: Filling) -> Allocation:
    """Return where the next one goes."""
    new = numbered(state, inst, number)
    return try_allocate(state, new, how.places, DEFAULT_ASKING, how.safe, how.shelf)


def numbered(state: State, inst: Inst, number: int) -> Inst:
    """Return an instance as the next one of a state."""
    new = inst.moved(inst.p, inst.s)
    new.idx, new.name = len(state.insts), f"new-{number}"
    new.alias = new.name
    return new


def _in_batches(start: Filled, inst: Inst, how: Filling, safe: Predicate) -> Filled:
    """Place many at once where that is safe, single ones near the limit.

    A cluster that is redundant with a batch was so with each part of it.
    """
    huge = True
    while True:
        step = _huge_step(start.state, inst) if huge else BIG_STEP
        limit = step if how.limit is None else min(step, how.limit)
        trail: list[Filled] = []
        batch = _one_by_one(start, inst, replace(how, safe=None, limit=limit), trail)
        if not safe(batch.state):
            if not huge:
                return _one_by_one(start, inst, how)
            huge = False
            start, how = _along(trail, start, how, safe)
            continue
        if len(batch.new) - len(start.new) < limit:
            return batch
        start, how = batch, less(how, limit)
        if how.limit == 0:
            # Ganeti does not check here whether the next one would be safe.
            return _one_by_one(start, inst, replace(how, safe=None))


def _along(
    trail: Sequence[Filled], start: Filled, how: Filling, safe: Predicate
) -> tuple[Filled, Filling]:
    """Take the batches that a larger one went through, as far as they are safe."""
    for part in trail:
        if how.limit is not None and how.limit <= BIG_STEP:
            break
        if not safe(part.state):
            break
        start, how = part, less(how, BIG_STEP)
    return start, how


def _huge_step(state: State, inst: Inst) -> int:
    """Return roughly how many instances fit, rather too few than too many."""
    unused = sum(node.unallocated for node in state.seen)
    kept = round(max(node.mem_total for node in state.seen))
    guess = (unused - kept) // max(1, inst.mem) - len(state.view)
    return max(HUGE_STEP, guess)


def less(how: Filling, placed: int) -> Filling:
    """Return how to go on once so many were placed."""
    # Ganeti subtracts all that was placed so far at every size anew.
    return replace(how, limit=None if how.limit is None else how.limit - placed)
