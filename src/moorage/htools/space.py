# SPDX-License-Identifier: BSD-2-Clause
"""How much still fits: the allocation step of `hail`, iterated.

*Standard*: the same size again and again, until nothing fits. *Tiered*: from
the largest size, shrinking whatever failed most often, until nothing fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from moorage.htools.allocate import Allocation, Asking, Predicate, try_allocate
from moorage.htools.fleet import Disk, InstanceRow
from moorage.htools.inst import Inst
from moorage.htools.placer import Shelf
from moorage.htools.policy import Spec
from moorage.htools.redundancy import Guard
from moorage.htools.requests import newcomer
from moorage.htools.state import State
from moorage.htools.words import Fail

MEM_STEP, DISK_STEP, CPU_STEP, SPINDLE_STEP = 64, 256, 1, 1
BIG_STEP: Final = 10
HUGE_STEP: Final = 20

Places = Sequence[tuple[int, list[int]]]


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
        Where to try, as `moorage.htools.allocate.targets` returns it.
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


def fill(state: State, inst: Inst, how: Filling) -> Filled:
    """Place the same instance until nothing fits any more."""
    return _fill(Filled({}, state), inst, how)


def _fill(start: Filled, inst: Inst, how: Filling) -> Filled:
    if how.safe is None or inst.template == "drbd":
        return _one_by_one(start, inst, replace(how, safe=None))
    return _in_batches(start, inst, how, how.safe)


def _one_by_one(start: Filled, inst: Inst, how: Filling) -> Filled:
    state, new, left = start.state, list(start.new), how.limit
    while True:
        found = _try(state, inst, len(new), how)
        if found.best is None or left == 0:
            return Filled(found.failures, state, tuple(new))
        state = state.with_new(found.best.moved)
        new.append(found.best.moved.inst)
        left = None if left is None else left - 1


def _try(state: State, inst: Inst, number: int, how: Filling) -> Allocation:
    named = replace(inst, name=f"new-{number}", idx=len(state.insts))
    named.alias = named.name
    asking = Asking(capacity=how.safe is not None)
    return try_allocate(state, named, how.places, asking, how.safe, how.shelf)


def _in_batches(start: Filled, inst: Inst, how: Filling, safe: Predicate) -> Filled:
    """Place many at once where that is safe, single ones near the limit.

    A cluster that is redundant with a batch was so with each part of it.
    """
    huge = True
    while True:
        step = _huge_step(start.state, inst) if huge else BIG_STEP
        limit = step if how.limit is None else min(step, how.limit)
        batch = _one_by_one(start, inst, replace(how, safe=None, limit=limit))
        if not safe(batch.state):
            if not huge:
                return _one_by_one(start, inst, how)
            huge = False
            continue
        rest = None if how.limit is None else max(0, how.limit - step)
        if rest == 0 or len(batch.new) == len(start.new):
            return batch
        start, how = batch, replace(how, limit=rest)


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
    """A size at which nothing fitted, and what that looked like."""

    inst: Inst
    done: Filled
    how: Filling


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
        start, inst = done, None if stopped else _step(levels, inst, done, how)
        if inst is None:
            inst, how = _big_step(levels, how)
            levels[1:] = []
    return levels[0].done


def _step(levels: list[_Level], inst: Inst, done: Filled, how: Filling) -> Inst | None:
    """Remember a size that did not fit; return the next smaller one."""
    levels.append(_Level(inst, done, how))
    return shrunk(inst, _causes(done.failures)[0])


def _less(how: Filling, placed: int) -> Filling:
    # Ganeti subtracts all that was placed so far at every size anew.
    return replace(how, limit=None if how.limit is None else how.limit - placed)


def _big_step(levels: Sequence[_Level], how: Filling) -> tuple[Inst | None, Filling]:
    """Return a size at which something fits, shrunk in one resource alone."""
    for level in reversed(levels):
        causes = _causes(level.done.failures)
        found = _enough(level.done.state, level.inst, causes, level.how)
        if found is not None:
            return found, level.how
    return None, how


def _causes(failures: dict[Fail, int]) -> list[Fail]:
    """Return the reasons, most frequent first; of equals the last one first."""
    often = sorted(failures.items(), key=lambda pair: pair[1])
    return [fail for fail, _ in reversed(often)]


def shrunk(inst: Inst, fail: Fail) -> Inst | None:
    """Return the instance one step smaller; None when that cannot be."""
    if fail is Fail.MEMORY:
        mem = inst.mem - MEM_STEP
        return replace(inst, mem=mem) if mem >= MEM_STEP else None
    if fail is Fail.CPU:
        cpus = inst.vcpus - CPU_STEP
        return replace(inst, vcpus=cpus) if cpus >= CPU_STEP else None
    if fail is Fail.DISK:
        return _less_disk(inst)
    if fail is Fail.SPINDLES and len(inst.disks) == 1:
        return _less_spindles(inst)
    return None


def _less_disk(inst: Inst) -> Inst | None:
    sizes = tuple(size - DISK_STEP for size in inst.sizes)
    if any(size < DISK_STEP for size in sizes):
        return None
    return replace(
        inst,
        dsk=inst.dsk - len(sizes) * DISK_STEP,
        sizes=sizes,
        disks=tuple(
            replace(disk, size=size)
            for disk, size in zip(inst.disks, sizes, strict=True)
        ),
        wants=tuple(
            (name, size) for (name, _), size in zip(inst.wants, sizes, strict=False)
        ),
    )


def _less_spindles(inst: Inst) -> Inst | None:
    spindles = inst.disks[0].spindles
    if spindles is None or spindles - SPINDLE_STEP < SPINDLE_STEP:
        return None
    disk = replace(inst.disks[0], spindles=spindles - SPINDLE_STEP)
    return replace(inst, disks=(disk,), total_spindles=disk.spindles)


def _shrinkings(inst: Inst, fail: Fail) -> Iterator[Inst]:
    """Yield ever smaller instances, but for the smallest (Ganeti stops there)."""
    smaller = shrunk(inst, fail)
    while smaller is not None:
        yield inst
        inst, smaller = smaller, shrunk(smaller, fail)


def _enough(
    state: State, inst: Inst, causes: Sequence[Fail], how: Filling
) -> Inst | None:
    """Return the instance shrunk in one resource alone until it fits."""
    ways = (_shrunk_enough(state, inst, fail, how) for fail in causes)
    return next((found for found in ways if found is not None), None)


def _shrunk_enough(state: State, inst: Inst, fail: Fail, how: Filling) -> Inst | None:
    """Return the first shrinking that fits, if each one before fails for `fail`."""
    first = _try(state, inst, 0, how)
    if first.best is None and not first.failures[fail]:
        return None
    chain = list(_shrinkings(inst, fail))
    if not chain:
        return None
    at = _first_other(state, chain, fail, how)
    if at is None or _try(state, chain[at], 0, how).best is None:
        return None
    return chain[at]


def _first_other(
    state: State, chain: Sequence[Inst], fail: Fail, how: Filling
) -> int | None:
    """Return the first of a chain that fits, or fails for other reasons alone.

    Less of one resource never brings its failure back, down to the least that
    the policy allows; so under one policy the place is found by halving.
    """

    def still(smaller: Inst) -> bool:
        tried = _try(state, smaller, 0, how)
        return tried.best is None and tried.failures[fail] > 0

    allowed = _policy_allows(state, chain, how)
    if allowed is None:
        return next((at for at, one in enumerate(chain) if not still(one)), None)
    low, high = -1, allowed
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if still(chain[middle]) else (low, middle)
    return high if high < allowed else None


def _policy_allows(state: State, chain: Sequence[Inst], how: Filling) -> int | None:
    """Return how far a chain keeps to the policy's least; None if policies differ."""
    nodes = [state.nodes[at] for at, _ in how.places]
    kinds = {(node.policy, node.exclusive) for node in nodes}
    policy = nodes[0].policy
    if len(kinds) > 1 or len(policy.ranges) > 1:
        return None
    low = policy.ranges[0][0]
    return sum(_is_above(inst, low) for inst in chain)


def _is_above(inst: Inst, low: Spec) -> bool:
    return (
        inst.mem >= low.memory
        and inst.vcpus >= low.cpus
        and all(size >= low.disk for size in inst.sizes)
    )
