# SPDX-License-Identifier: BSD-2-Clause
"""How much still fits: the allocation step of `hail`, iterated.

*Standard*: the same size again and again, until nothing fits. *Tiered*: from
the largest size, shrinking whatever failed most often, until nothing fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from moorage.htools.fleet import Disk, InstanceRow
from moorage.htools.inst import Inst
from moorage.htools.placement.allocate import (
    Allocation,
    Asking,
    Places,
    Predicate,
    tally,
    try_allocate,
)
from moorage.htools.placement.allocation import FAILS
from moorage.htools.placement.placer import Shelf
from moorage.htools.placement.requests import newcomer
from moorage.htools.placement.shrinking import Shrinkings, shrunk
from moorage.htools.policy import Policy
from moorage.htools.state import State
from moorage.htools.survival.redundancy import Guard
from moorage.htools.words import Fail

BIG_STEP: Final = 10
HUGE_STEP: Final = 20
_ASKING: Final = Asking()


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
        """The reasons, the most frequent first."""
        return sorted(self.failures.items(), key=lambda pair: -pair[1])

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
    shelf : Shelf
        Keeps the arrays of the last state.
    """

    places: Places
    safe: Predicate | None
    limit: int | None = None
    shelf: Shelf = field(default_factory=Shelf)


def size_of(inst: Inst) -> Size:
    """Return the size of an instance."""
    spindles = inst.disks[0].spindles if len(inst.disks) == 1 else None
    return Size(inst.mem, inst.dsk, inst.vcpus, spindles or 0)


def model(state: State, size: Size, template: str, spindle_use: int) -> Inst:
    """Return an instance of a size, to be placed again and again."""
    row = InstanceRow(
        name="new",
        mem=size.mem,
        disk=size.disk,
        vcpus=size.cpu,
        template=template,
        spindle_use=spindle_use,
        disks=(Disk(size.disk, size.spindles),),
    )
    return newcomer(state, row)


class Safety:
    """The predicate that filling must leave true; it remembers its last answer.

    Parameters
    ----------
    online_only
        Pass over nodes that are lost already.
    skip
        Groups that do not matter.
    """

    def __init__(self, *, online_only: bool = False, skip: Sequence[int] = ()) -> None:
        self.guard = Guard(online_only=online_only, skip_groups=skip)
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
    return _fill(Filled({}, state), inst, how)


def _fill(start: Filled, inst: Inst, how: Filling) -> Filled:
    if how.safe is None or inst.template == "drbd":
        return _one_by_one(start, inst, replace(how, safe=None))
    if how.limit != 0:
        first = _try(start.state, inst, len(start.new), how)
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
        found = _try(state, inst, len(new), how)
        if found.best is None or left == 0:
            return Filled(found.failures, state, tuple(new))
        state = state.with_new(found.best.moved)
        new.append(found.best.moved.inst)
        left = None if left is None else left - 1


def _try(state: State, inst: Inst, number: int, how: Filling) -> Allocation:
    new = _named(state, inst, number)
    return try_allocate(state, new, how.places, _ASKING, how.safe, how.shelf)


def _named(state: State, inst: Inst, number: int) -> Inst:
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
        start, how = batch, _less(how, limit)
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
        start, how = part, _less(how, BIG_STEP)
    return start, how


def _huge_step(state: State, inst: Inst) -> int:
    """Return roughly how many instances fit, rather too few than too many."""
    unused = sum(node.unallocated for node in state.seen)
    kept = round(max(node.mem_total for node in state.seen))
    guess = (unused - kept) // max(1, inst.mem) - len(state.view)
    return max(HUGE_STEP, guess)


def fill_tiered(state: State, sizes: Sequence[Inst], how: Filling) -> Filled:
    """Place ever smaller instances, starting from each of some sizes in turn."""
    result = Filled({}, state)
    for inst in sizes:
        left = None if how.limit is None else how.limit - len(result.new)
        if how.limit is not None and how.limit <= len(result.new):
            break
        result = _tiered(result, inst, replace(how, limit=left))
    return result


@dataclass(frozen=True, slots=True)
class _Level:
    """Sizes at which nothing fitted, most often for the same reason.

    Attributes
    ----------
    inst : Inst
        The first of them.
    count : int
        How many they are, each a step smaller than the one before.
    done : Filled
        What trying the first looked like.
    """

    inst: Inst
    count: int
    done: Filled
    how: Filling

    @property
    def fail(self) -> Fail:
        """What they are short of."""
        return _causes(self.done.failures)[0]

    @property
    def next(self) -> Inst | None:
        """The first size after them."""
        return shrunk(self.inst, self.fail, self.count)


def _tiered(start: Filled, first: Inst, how: Filling) -> Filled:
    """Fill; shrink what failed most often; fill again.

    When shrinking step by step ends without a place, go back up and look, from
    the smallest size to the largest, whether shrinking one resource alone helps.
    """
    levels: list[_Level] = []
    inst: Inst | None = first
    while inst is not None:
        done = _fill(start, inst, how)
        stopped = how.limit is not None and how.limit <= len(done.new)
        if len(done.new) > len(start.new):
            if stopped:
                return done
            levels.clear()
        if stopped and not levels:
            return done
        how = _less(how, len(done.new))
        if not stopped:
            levels.append(_Level(inst, _alike(inst, done, how), done, how))
        start, inst = done, None if stopped else levels[-1].next
        if inst is None:
            inst, how = _big_step(levels, how)
            levels[1:] = []
    return levels[0].done


def _alike(inst: Inst, done: Filled, how: Filling) -> int:
    """Return how many sizes, from one at which nothing fits, are short of the same.

    They are those that need not be filled one by one: nothing fits there.
    """
    fail = _causes(done.failures)[0]
    chain = Shrinkings(inst, fail)
    # With a limit, each size takes off it what was placed so far.
    if done.failures[Fail.N1] or (how.limit is not None and done.new) or not chain:
        return 1

    def likewise(smaller: Inst) -> bool:
        counts = _tally(done.state, smaller, how)
        return not counts[0] and _causes(_failures(counts))[0] is fail

    found = chain.first(likewise, _policies(done.state, how), above=1)
    return max(1, len(chain)) if found is None else found


def _less(how: Filling, placed: int) -> Filling:
    # Ganeti subtracts all that was placed so far at every size anew.
    return replace(how, limit=None if how.limit is None else how.limit - placed)


def _big_step(levels: Sequence[_Level], how: Filling) -> tuple[Inst | None, Filling]:
    """Return a size at which something fits, shrunk in one resource alone.

    What a size was short of was tried at the next one, which is smaller in it.
    """
    tried: Fail | None = None
    for level in reversed(levels):
        for steps in range(level.count - 1, -1, -1):
            inst = shrunk(level.inst, level.fail, steps) if steps else level.inst
            assert inst is not None  # noqa: S101 - it was tried
            found = _bigger_step(level, inst, tried and level.fail)
            if found is not None:
                return found, level.how
            tried = level.fail
    return None, how


def _bigger_step(level: _Level, inst: Inst, tried: Fail | None) -> Inst | None:
    """Return a size shrunk in one resource, but not in the one that was tried."""
    state, how = level.done.state, level.how
    failures = level.done.failures
    if inst is not level.inst:
        failures = _failures(_tally(state, inst, how))
    ways = (
        _shrunk_enough(state, inst, fail, how)
        for fail in _causes(failures)
        if fail is not tried and failures[fail]
    )
    return next((found for found in ways if found is not None), None)


def _causes(failures: dict[Fail, int]) -> list[Fail]:
    """Return the reasons, most frequent first; of equals the last one first."""
    often = sorted(failures.items(), key=lambda pair: pair[1])
    return [fail for fail, _ in reversed(often)]


def _shrunk_enough(state: State, inst: Inst, fail: Fail, how: Filling) -> Inst | None:
    """Return the first shrinking that fits, if each one before fails for `fail`."""

    def fails(smaller: Inst) -> bool:
        counts = _tally(state, smaller, how)
        if counts[0] and (how.safe is None or _fits(state, smaller, how)):
            return False
        return counts[FAILS.index(fail, 1)] > 0

    chain = Shrinkings(inst, fail)
    at = chain.first(fails, _policies(state, how)) if len(chain) else None
    return chain[at] if at is not None and _fits(state, chain[at], how) else None


def _fits(state: State, inst: Inst, how: Filling) -> bool:
    return _try(state, inst, 0, how).best is not None


def _tally(state: State, inst: Inst, how: Filling) -> list[int]:
    """Return how many places would do, safe or not, and how many fail for what."""
    new = _named(state, inst, 0)
    return tally(state, new, how.places, _ASKING, how.shelf)


def _failures(counts: Sequence[int]) -> dict[Fail, int]:
    return dict(zip(FAILS[1:], counts[1:], strict=True))


def _policies(state: State, how: Filling) -> list[Policy]:
    policies = (state.nodes[at].policy for at, _ in how.places)
    return list({id(policy): policy for policy in policies}.values())
