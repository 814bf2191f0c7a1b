# SPDX-License-Identifier: BSD-2-Clause
"""Ever smaller instances, and where in a row of them something changes.

Less of one resource never brings its failure back, nor any other failure, as long as
the policies say the same: a place that fails for another reason goes on failing for it.
So between the sizes at which a policy changes its mind, what is true of many failures
becomes false once at most, and is looked for by steps that double, then by halving.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from moorage.htools.constants import Fail
from moorage.htools.inst import Inst
from moorage.htools.policy import Policy, Spec

MEM_STEP, DISK_STEP, CPU_STEP, SPINDLE_STEP = 64, 256, 1, 1


def shrunk(inst: Inst, fail: Fail, steps: int = 1) -> Inst | None:
    """Return the instance some steps smaller; None when that cannot be."""
    if fail is Fail.MEMORY:
        mem = inst.mem - steps * MEM_STEP
        return inst.copy(mem=mem) if mem >= MEM_STEP else None
    if fail is Fail.CPU:
        cpus = inst.vcpus - steps * CPU_STEP
        return inst.copy(vcpus=cpus) if cpus >= CPU_STEP else None
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
    return inst.copy(
        dsk=inst.dsk - len(sizes) * less,
        sizes=sizes,
        disks=tuple(
            disk._replace(size=size)
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
    disk = inst.disks[0]._replace(spindles=spindles - steps * SPINDLE_STEP)
    return inst.copy(disks=(disk,), total_spindles=disk.spindles)


_STEPS: Final = defaultdict(
    lambda: 1,
    {Fail.MEMORY: MEM_STEP, Fail.DISK: DISK_STEP, Fail.CPU: CPU_STEP},
)


def _amounts(inst: Inst, fail: Fail) -> tuple[int, ...]:
    """Return how much there is of what a reason is about; nothing if not to shrink."""
    if fail is Fail.MEMORY:
        return (inst.mem,)
    if fail is Fail.CPU:
        return (inst.vcpus,)
    if fail is Fail.DISK:
        return inst.sizes
    if fail is Fail.SPINDLES and len(inst.disks) == 1:
        return (inst.disks[0].spindles or 0,)
    return ()


def _bound(spec: Spec, fail: Fail) -> int:
    """Return what a policy's size says about it."""
    return {
        Fail.MEMORY: spec.memory,
        Fail.CPU: spec.cpus,
        Fail.DISK: spec.disk,
        Fail.SPINDLES: spec.spindles,
    }.get(fail, 0)


@dataclass(frozen=True, slots=True)
class Shrinkings:
    """Ever smaller instances, but for the smallest (Ganeti stops there)."""

    inst: Inst
    fail: Fail

    def __len__(self) -> int:
        """Return how many there are."""
        least = min(_amounts(self.inst, self.fail), default=0)
        return max(0, least // _STEPS[self.fail] - 1)

    def __getitem__(self, at: int) -> Inst:
        """Return the instance so many steps smaller."""
        found = shrunk(self.inst, self.fail, at) if at else self.inst
        if found is None or at >= len(self):
            raise IndexError(at)
        return found

    def first(
        self,
        claim: Callable[[Inst], bool],
        policies: Iterable[Policy],
        *,
        above: int = 0,
    ) -> int | None:
        """Return the first of them for which a claim is false; None for no one.

        Parameters
        ----------
        claim
            Becomes false once at most while the policies say the same.
        above
            Where to start.
        """

        def holds(at: int) -> bool:
            return claim(self[at])

        cuts = [at for at in self._cuts(policies) if above < at]
        for low, high in pairwise([above, *cuts]):
            found = _fall(holds, low, high)
            if found is not None:
                return found
        return None

    def _cuts(self, policies: Iterable[Policy]) -> list[int]:
        """Return where a policy may change its mind, and the end."""
        step, cuts = _STEPS[self.fail], {len(self)}
        for policy in set(policies):
            for spec in (spec for pair in policy.ranges for spec in pair):
                for size in _amounts(self.inst, self.fail):
                    over = size - _bound(spec, self.fail)
                    # The first that is not above the bound, and that is below it.
                    cuts |= {-(-over // step), over // step + 1}
        return sorted(at for at in cuts if 0 < at <= len(self))


def _fall(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the first place in [low, high) where a claim does not hold."""
    good, step = low - 1, 1
    while good < high - 1:
        at = min(good + step, high - 1)
        if not holds(at):
            return _halved(holds, good, at)
        good, step = at, 2 * step
    return None


def _halved(holds: Callable[[int], bool], good: int, bad: int) -> int:
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return bad
