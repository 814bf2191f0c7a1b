# SPDX-License-Identifier: BSD-2-Clause
"""How much still fits: the allocation step of `hail`, iterated.

*Standard*: the same size again and again, until nothing fits. *Tiered*: from
the largest size, shrinking whatever failed most often, until nothing fits.
"""

from collections import defaultdict
from collections.abc import Sequence
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


def _one_by_one(
    start: Filled, inst: Inst, how: Filling, trail: list[Filled] | None = None
) -> Filled:
    """Place until nothing fits; leave every tenth state on the trail, if any."""
    state, new, left = start.state, list(start.new), how.limit
    while True:
        placed = len(new) - len(start.new)
        if trail is not None and placed and placed % BIG_STEP == 0:
            trail.append(Filled({}, state, tuple(new)))
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
        trail: list[Filled] = []
        batch = _one_by_one(start, inst, replace(how, safe=None, limit=limit), trail)
        if not safe(batch.state):
            if not huge:
                return _one_by_one(start, inst, how)
            huge = False
            start, how = _along(trail, start, how, safe)
            continue
        rest = None if how.limit is None else max(0, how.limit - step)
        if rest == 0 or len(batch.new) == len(start.new):
            return batch
        start, how = batch, replace(how, limit=rest)


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


def shrunk(inst: Inst, fail: Fail, steps: int = 1) -> Inst | None:
    """Return the instance some steps smaller; None when that cannot be."""
    if fail is Fail.MEMORY:
        mem = inst.mem - steps * MEM_STEP
        return replace(inst, mem=mem) if mem >= MEM_STEP else None
    if fail is Fail.CPU:
        cpus = inst.vcpus - steps * CPU_STEP
        return replace(inst, vcpus=cpus) if cpus >= CPU_STEP else None
    if fail is Fail.DISK and inst.sizes:
        return _less_disk(inst, steps)
    if fail is Fail.SPINDLES and len(inst.disks) == 1:
        return _less_spindles(inst, steps)
    return None


def _less_disk(inst: Inst, steps: int = 1) -> Inst | None:
    less = steps * DISK_STEP
    sizes = tuple(size - less for size in inst.sizes)
    if any(size < DISK_STEP for size in sizes):
        return None
    return replace(
        inst,
        dsk=inst.dsk - len(sizes) * less,
        sizes=sizes,
        disks=tuple(
            replace(disk, size=size)
            for disk, size in zip(inst.disks, sizes, strict=True)
        ),
        wants=tuple(
            (name, size) for (name, _), size in zip(inst.wants, sizes, strict=False)
        ),
    )


def _less_spindles(inst: Inst, steps: int = 1) -> Inst | None:
    spindles = inst.disks[0].spindles
    if spindles is None or spindles - steps * SPINDLE_STEP < SPINDLE_STEP:
        return None
    disk = replace(inst.disks[0], spindles=spindles - steps * SPINDLE_STEP)
    return replace(inst, disks=(disk,), total_spindles=disk.spindles)


_STEPS: Final = defaultdict(
    lambda: 1,
    {Fail.MEMORY: MEM_STEP, Fail.DISK: DISK_STEP, Fail.CPU: CPU_STEP},
)


def _amount(inst: Inst, fail: Fail) -> int:
    """Return how much there is of what a reason is about; 0 if it cannot shrink."""
    if fail is Fail.MEMORY:
        return inst.mem
    if fail is Fail.CPU:
        return inst.vcpus
    if fail is Fail.DISK:
        return min(inst.sizes, default=0)
    if fail is Fail.SPINDLES and len(inst.disks) == 1:
        return inst.disks[0].spindles or 0
    return 0


@dataclass(frozen=True, slots=True)
class Shrinkings:
    """Ever smaller instances, but for the smallest (Ganeti stops there)."""

    inst: Inst
    fail: Fail

    def __len__(self) -> int:
        """Return how many there are."""
        return max(0, _amount(self.inst, self.fail) // _STEPS[self.fail] - 1)

    def above(self, low: Spec) -> int:
        """Return how many keep to a policy's least."""
        if not _is_above(self.inst, low):
            return 0
        least = {Fail.MEMORY: low.memory, Fail.CPU: low.cpus, Fail.DISK: low.disk}
        left = _amount(self.inst, self.fail) - least.get(self.fail, 0)
        return min(len(self), left // _STEPS[self.fail] + 1)

    def __getitem__(self, at: int) -> Inst:
        """Return the instance so many steps smaller."""
        found = shrunk(self.inst, self.fail, at) if at else self.inst
        if found is None or at >= len(self):
            raise IndexError(at)
        return found


def _enough(
    state: State, inst: Inst, causes: Sequence[Fail], how: Filling
) -> Inst | None:
    """Return the instance shrunk in one resource alone until it fits."""
    first = _try(state, inst, 0, how)
    able = [fail for fail in causes if first.best is not None or first.failures[fail]]
    ways = (_shrunk_enough(state, inst, fail, how) for fail in able)
    return next((found for found in ways if found is not None), None)


def _shrunk_enough(state: State, inst: Inst, fail: Fail, how: Filling) -> Inst | None:
    """Return the first shrinking that fits, if each one before fails for `fail`."""
    chain = Shrinkings(inst, fail)
    if not len(chain):
        return None
    at = _first_other(state, chain, fail, how)
    if at is None or _try(state, chain[at], 0, how).best is None:
        return None
    return chain[at]


def _first_other(
    state: State, chain: Shrinkings, fail: Fail, how: Filling
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
        places = range(len(chain))
        return next((at for at in places if not still(chain[at])), None)
    low, high = -1, allowed
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if still(chain[middle]) else (low, middle)
    return high if high < allowed else None


def _policy_allows(state: State, chain: Shrinkings, how: Filling) -> int | None:
    """Return how far a chain keeps to the policy's least; None if policies differ."""
    nodes = [state.nodes[at] for at, _ in how.places]
    kinds = {(node.policy, node.exclusive) for node in nodes}
    policy = nodes[0].policy
    if len(kinds) > 1 or len(policy.ranges) > 1:
        return None
    low = policy.ranges[0][0]
    return chain.above(low)


def _is_above(inst: Inst, low: Spec) -> bool:
    return (
        inst.mem >= low.memory
        and inst.vcpus >= low.cpus
        and all(size >= low.disk for size in inst.sizes)
    )
